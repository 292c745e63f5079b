//! 8: branches on the device: IF with two bodies by a number in memory, SWITCH by a kernel.
//!
//! ```sh
//! cargo run -p cuda-graph --example 08_branch -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::prelude::*;

kernel! {
    // SAFETY: `choose` sets the condition to the first element of `number`.
    unsafe in "kernels/basics.ptx";
    fn choose(number: In<u32>, branch: ConditionalHandle)
    where number.len() >= 1, grid.product() * block.product() == 1;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let choose = choose::load(&context)?;
    let number = stream.zeros::<u32>(1)?;
    let (size, name) = (stream.zeros::<u32>(1)?, stream.zeros::<u32>(1)?);

    let graph = context.graph()?;
    // Is the number less than 2?
    let small = Test::less(&number, 2);
    let sizes =
        graph.root().if_then_else(small, |yes| yes.root().fill(&size, 1), |no| no.root().fill(&size, 2))?;
    let sizes = sizes.named("small?");
    // One body for each number; none beyond.
    let branch = graph.condition()?;
    let look = sizes.then().launch(&choose, per(1, 1), (&number, &branch))?;
    let names = look.then().switch_node(&branch, 3)?.named("which?");
    for (body, value) in names.bodies()?.iter().zip([100, 101, 102]) {
        body.root().fill(&name, value)?;
    }

    let mut exec = graph.instantiate()?;
    let mut found = Vec::new();
    for value in [0, 1, 2, 3] {
        stream.write(&number, &[value])?;
        exec.launch(&stream)?;
        found.push((size.read_blocking(&stream)?[0], name.read_blocking(&stream)?[0]));
    }
    println!("{found:?}");
    assert_eq!(found, [(1, 100), (1, 101), (2, 102), (2, 102)]); // 3 has no body: the name stays
    Ok(())
}
