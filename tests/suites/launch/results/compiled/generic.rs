//! Pointers that lead into any space, as several compilers write them, without optimisation and
//! with debug information.

use cuda_handles::{Buffer, Context, Image, Library, Stream};
use cuda_launch::{Launch, LaunchConfig, ParamBytes, params};
use cuda_tests::{Need, needs, no_leaks, printed, setup};

use super::compiled;

/// `generic.cu` as a compiler translated it.
struct Translation {
    name: &'static str,
    ptx: &'static str,
    /// It needs a driver that takes PTX of version 9.0.
    is_new: bool,
}

macro_rules! translation {
    ($file:literal, $is_new:literal) => {
        Translation {
            name: $file,
            ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $file)),
            is_new: $is_new,
        }
    };
}

const TRANSLATIONS: [Translation; 4] = [
    translation!("generic.ptx", false),
    translation!("compilers/nvrtc-debug.ptx", false),
    translation!("compilers/nvcc-G.ptx", true),
    translation!("compilers/clang-O0.ptx", false),
];

/// A translation, loaded.
struct Loaded {
    library: Library,
    stream: Stream,
}

impl Loaded {
    /// The result of the kernel of that name in `words` zeros.
    fn words(
        &self,
        name: &str,
        threads: u32,
        words: usize,
        launch: impl FnOnce(cuda_handles::Kernel, LaunchConfig, &Buffer<u32>),
    ) -> Vec<u32> {
        let out = self.stream.zeros::<u32>(words).unwrap();
        launch(self.library.kernel(name).unwrap(), LaunchConfig::new(1, threads), &out);
        out.read_blocking(&self.stream).unwrap()
    }

    /// As [`words`](Self::words), of a kernel that has no other argument.
    fn plain(&self, name: &str, threads: u32, words: usize) -> Vec<u32> {
        self.words(name, threads, words, |kernel, config, out| {
            // SAFETY: the kernel writes no more words than its test says, and reads nothing else.
            unsafe { kernel.launch(&self.stream, config, params![out]) }.unwrap();
        })
    }
}

/// Calls `test` with each translation that the driver takes.
fn each(test: impl Fn(&str, &Context, &Loaded)) {
    let context = setup();
    no_leaks(|| {
        for translation in &TRANSLATIONS {
            if translation.is_new && !Need::Ptx9.is_met() {
                continue;
            }
            let library = Library::load(&context, Image::Ptx(translation.ptx))
                .unwrap_or_else(|error| panic!("{}: {error}", translation.name));
            let loaded = Loaded { library, stream: context.stream().unwrap() };
            test(translation.name, &context, &loaded);
        }
    });
}

#[test]
fn a_pointer_leads_into_every_space() {
    each(|name, _, loaded| {
        let found = loaded.plain("spaces", 1, 8);
        assert_eq!(found, [7, 11, 5, 6, 7, 506, 3, 9], "{name}");
    });
}

#[test]
fn the_space_of_a_pointer_is_told() {
    const GLOBAL: u32 = 1;
    const CONSTANT: u32 = 0x10;
    const SHARED: u32 = 0x100;
    const LOCAL: u32 = 0x1000;
    each(|name, _, loaded| {
        let found = loaded.plain("kinds", 1, 8);
        assert_eq!(found, [GLOBAL, GLOBAL, CONSTANT, SHARED, LOCAL, GLOBAL, CONSTANT, 2], "{name}");
    });
}

#[test]
fn structures_in_three_spaces_point_into_four() {
    each(|name, _, loaded| {
        let nodes = loaded.stream.zeros::<[u64; 3]>(2).unwrap();
        let found = loaded.words("lists", 1, 10, |kernel, config, out| {
            // SAFETY: the kernel writes ten words and two nodes of three words.
            unsafe { kernel.launch(&loaded.stream, config, params![out, &nodes]) }.unwrap();
        });
        assert_eq!(found[..5], [5263, 233, 4202, 77, 35], "{name}");
    });
}

#[test]
fn every_call_has_a_frame_of_its_own() {
    each(|name, _, loaded| {
        let found = loaded.plain("recursion", 3, 9);
        let expected: Vec<u32> = (0..3).flat_map(|t| [t * (t + 1) / 2, t * (t + 1), 2 * t + 3]).collect();
        assert_eq!(found, expected, "{name}");
    });
}

#[test]
fn functions_are_called_by_their_addresses() {
    each(|name, _, loaded| {
        let found = loaded.plain("functions", 1, 9);
        assert_eq!(found[..5], [1293, 301, 20, 1, 0], "{name}");
    });
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Large {
    words: [u32; 12],
    table: u64,
}

#[test]
fn structures_are_given_by_value_and_by_reference() {
    each(|name, _, loaded| {
        let table = loaded.stream.upload(&[9_u32]).unwrap();
        let mut words = std::array::from_fn::<u32, 12, _>(|i| i as u32 * 5 + 2);
        let large = Large { words, table: table.address() };
        let found = loaded.words("values", 1, 9, |kernel, config, out| {
            // SAFETY: the kernel's structure has these fields; the buffer behind the address
            // outlives the launch.
            let argument = unsafe { ParamBytes::of(&large) };
            // SAFETY: the arguments are the kernel's, and it writes no more than nine words.
            unsafe { kernel.launch(&loaded.stream, config, params![out, argument]) }.unwrap();
        });
        let total = |words: &[u32]| words.iter().zip(1..).map(|(word, i)| word * i).sum::<u32>();
        let reversed: Vec<u32> = words.iter().rev().copied().collect();
        let (first, second) = (total(&words) + 9, total(&reversed) + 9);
        words[0] = 1000;
        assert_eq!(found[..3], [first, second, total(&words) + 3], "{name}");
    });
}

#[test]
fn what_an_initialiser_does_not_name_is_zero() {
    each(|name, _, loaded| {
        let found = loaded.plain("zeros", 1, 9);
        assert_eq!(found[..5], [0, 2, 0, 0, 352], "{name}");
    });
}

#[test]
fn threads_exchange_pointers() {
    each(|name, _, loaded| {
        let found = loaded.plain("exchange", 64, 66);
        let mut expected: Vec<u32> = (0..64).map(|i| (63 - i) * (63 - i)).collect();
        expected.extend([expected.iter().sum(), 63 * 63]);
        assert_eq!(found, expected, "{name}");
    });
}

#[test]
fn sums_and_differences_share_their_carry() {
    each(|name, _, loaded| {
        let input = loaded.stream.upload(&[0, 1, 2, u32::MAX]).unwrap();
        let found = loaded.words("carries", 1, 8, |kernel, config, out| {
            // SAFETY: the kernel reads four words and writes eight.
            unsafe { kernel.launch(&loaded.stream, config, params![out, &input]) }.unwrap();
        });
        assert_eq!(found, [0, 1, 0, u32::MAX, 1, u32::MAX, 2, 0], "{name}");
    });
}

#[test]
fn strings_of_every_space_are_printed() {
    const PRINTED: &str = "begin\nglobal 1 0.50\nconst 2 1.25\nshared 3 -2.00\nlocal 4 1000.00\nliteral 5 0.00\n\
                           -5|    7|7    |-9000000000|x|(null)|%\nend\n";
    let Some(text) = printed!() else {
        each(|name, _, loaded| {
            let found = loaded.plain("prints", 1, 6);
            assert_eq!(found, [3, 3, 3, 3, 3, 6], "{name}");
        });
        return;
    };
    let count = text.matches(PRINTED).count();
    let old = TRANSLATIONS.iter().filter(|translation| !translation.is_new).count();
    assert!(count == TRANSLATIONS.len() || count == old, "printed whole {count} times: {text}");
}

/// An array of so many words as numba passes it.
macro_rules! numba_array {
    ($words:expr, $len:literal) => {
        params![0_u64, 0_u64, $len as u64, 4_u64, $words, $len as u64, 4_u64]
    };
}

#[test]
fn what_numba_writes_for_debugging_is_right() {
    let Some(text) = printed!() else {
        let context = setup();
        needs!(Ptx9);
        no_leaks(|| {
            let stream = context.stream().unwrap();
            let kernel = compiled!(&context, "compilers/numba-debug", "numba_kernel");
            let out = stream.zeros::<u32>(8).unwrap();
            // SAFETY: the arguments are those of an array of eight words.
            unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), numba_array!(&out, 8)) }.unwrap();
            let expected = [46, 615, 38, 11_102, 7, 105, 40, 41];
            assert_eq!(out.read_blocking(&stream).unwrap(), expected);
        });
        return;
    };
    if let Some(at) = text.find("skipped: ") {
        println!("{}", text[at..].lines().next().unwrap_or_default());
    } else {
        assert!(text.contains("numba 10 105 0.5"), "{text}");
    }
}
