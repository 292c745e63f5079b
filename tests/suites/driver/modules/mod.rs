//! Images, and what is found in them.

mod ptx_images;
mod variables;
