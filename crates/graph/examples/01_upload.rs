//! 1: numbers go to the device and come back, by copies that wait and by copies that do not.
//!
//! ```sh
//! cargo run -p cuda-graph --example 01_upload -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let numbers: Vec<u32> = (0..1000).collect();

    // None of these calls waits. `upload` copies the slice, which may go at once.
    let x = stream.upload(&numbers)?;
    let y = stream.zeros::<u32>(1000)?;
    stream.copy(x.slice(..500)?, y.slice(500..)?)?;
    stream.fill(y.slice(..500)?, 7)?;

    // Waits for the stream.
    let all = y.read_blocking(&stream)?;
    assert_eq!((all[0], all[499], all[500], all[999]), (7, 7, 0, 499));

    // Into pinned memory, without a wait; an event says when it is there.
    let pinned = context.pinned_zeros::<u32>(1000)?.share();
    let done = context.event()?;
    stream.copy(&y, &pinned)?;
    stream.record(&done)?;
    done.synchronize_blocking()?;
    let Ok(pinned) = pinned.try_unique() else { return Err("something still uses the memory".into()) };
    assert_eq!(*pinned, all[..]);
    println!("{} numbers went there and back", pinned.len());
    Ok(())
}
