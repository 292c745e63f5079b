//! Arguments are what the kernel takes, or the launch is refused.

mod lying_traits;
mod owned;
mod sizes;
