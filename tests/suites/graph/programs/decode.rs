//! A model that generates token after token, with graph parameters and without.

#[path = "../../../../crates/graph/examples/decode/model.rs"]
mod model;
#[path = "../../../../crates/graph/examples/decode/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/decode/reference.rs"]
mod reference;
#[path = "../../../../crates/graph/examples/decode/ways.rs"]
mod ways;

use cuda_graph::Graph;
use cuda_handles::Context;
use cuda_tests::{count, no_leaks, setup};

use self::model::Sizes;
use self::program::Decoder;
use self::ways::Way;
use super::assert_drawn;

/// The last token of one speaker fills its cache, the other's has room for one more.
const SIZES: Sizes = Sizes { layers: 3, width: 6, tokens: 19 };

fn graph(context: &Context) -> Graph {
    let decoder = Decoder::new(context, SIZES).unwrap();
    let caches = decoder.start().unwrap();
    decoder.graph_with_parameters(0, &caches[0]).unwrap().graph
}

#[test]
fn each_way_to_change_position_and_cache_is_as_on_the_host() {
    let context = setup();
    no_leaks(|| {
        let decoder = Decoder::new(&context, SIZES).unwrap();
        let expected = reference::run(SIZES);
        for way in [Way::Parameters, Way::Update, Way::Rebuild, Way::Memory] {
            let decoded = way.decode(&decoder).unwrap();
            assert_eq!(decoded.results, expected, "{way:?}");
            assert_eq!(decoded.on_host.len(), SIZES.tokens as usize);
            assert!(decoded.on_host.iter().sum::<std::time::Duration>() <= decoded.in_all);
        }
    });
}

#[test]
fn a_token_costs_an_update_for_each_kernel_that_stores_or_attends() {
    let context = setup();
    no_leaks(|| {
        let decoder = Decoder::new(&context, SIZES).unwrap();
        let caches = decoder.start().unwrap();
        let step = decoder.graph_with_parameters(0, &caches[0]).unwrap();
        let mut exec = step.graph.instantiate().unwrap();
        let mut token = |position, cache| {
            let values = ((&step.position, position), (&step.cache, cache));
            count(|| exec.launch_with(&decoder.stream, values).unwrap()).1
        };
        // The first launch waits for the memory, too.
        token(0, &caches[0]);
        token(0, &caches[1]);
        let changed = u64::from(2 * SIZES.layers);
        let cost = token(1, &caches[0]);
        cost.assert_calls(&[("cuGraphExecNodeSetParams", changed), ("cuGraphLaunch", 1)]);
        let cost = token(1, &caches[0]);
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
    });
}

#[test]
fn a_position_beyond_the_cache_is_refused() {
    let context = setup();
    no_leaks(|| {
        let decoder = Decoder::new(&context, SIZES).unwrap();
        let caches = decoder.start().unwrap();
        let step = decoder.graph_with_parameters(0, &caches[0]).unwrap();
        let mut exec = step.graph.instantiate().unwrap();
        let refused = exec.launch_with(&decoder.stream, ((&step.position, SIZES.capacity()),));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("position < capacity"), "{refused}");
        exec.launch_with(&decoder.stream, ((&step.position, SIZES.capacity() - 1),)).unwrap();
        decoder.stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn its_picture_tells_of_it() {
    let context = setup();
    assert_drawn(&graph(&context), &["normalise", "project", "store", "attend", "mix", "activate"]);
}
