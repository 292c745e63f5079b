//! What C and a GPU print.

use super::{Cell, Checked, Source, format};

/// The address of `global!`.
const TEXT: u64 = 1000;

/// Arguments in order; strings by their number.
struct List<'a>(std::slice::Iter<'a, u64>);

impl Source for List<'_> {
    fn argument(&mut self, cell: Cell) -> Checked<u64> {
        let value = *self.0.next().unwrap();
        Ok(if cell == Cell::S32 { value as i32 as u64 } else { value })
    }
    fn text(&mut self, address: u64) -> Checked<Vec<u8>> {
        Ok(if address == TEXT { "global!".into() } else { format!("text{address}").into_bytes() })
    }
}

fn printed(pattern: &str, args: &[u64]) -> String {
    let (text, used) = format(pattern.as_bytes(), &mut List(args.iter())).unwrap();
    assert_eq!(used, args.len() as u64, "{pattern}");
    String::from_utf8(text).unwrap()
}

#[test]
fn as_c_prints() {
    let minus = u64::from(-5_i32 as u32);
    assert_eq!(
        printed("%d|%5d|%-5d|%05d|%+d|% d", &[minus, 7, 7, minus, 7, 7]),
        "-5|    7|7    |-0005|+7| 7"
    );
    assert_eq!(
        printed("%u %x %#X %o %lld %llu", &[42, 255, 255, 8, -9_i64 as u64, u64::MAX]),
        "42 ff 0XFF 10 -9 18446744073709551615"
    );
    assert_eq!(printed("%.3d|%*d|%.0d|%c|%p|%%", &[7, 4, 7, 0, 65, 4096]), "007|   7||A|0x1000|%");
    assert_eq!(printed("%s|%6s|%.2s|%s", &[1, 2, 3, 0]), "text1| text2|te|(null)");
    let float = |value: f64| value.to_bits();
    assert_eq!(
        printed("%f %.2f %8.1f|%-8.1f|%08.1f", &[1.5, -2.345, 3.25, 3.25, -3.25].map(float)),
        "1.500000 -2.35      3.2|3.2     |-00003.2"
    );
    assert_eq!(printed("%e %.1E", &[12345.678, 0.00012].map(float)), "1.234568e+04 1.2E-04");
    assert_eq!(
        printed("%g %g %g %g %G", &[0.0, 100000.0, 1e6, 0.0001, 1e-10].map(float)),
        "0 100000 1e+06 0.0001 1E-10"
    );
    assert_eq!(
        printed("%f %5.1f %F", &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(float)),
        "nan   inf -INF"
    );
    assert_eq!(printed("%a %a", &[1.0, 0.75].map(float)), "0x1p+0 0x1.8p-1");
    assert_eq!(printed("100%", &[]), "100%");
    // Seen on a GPU.
    let minus_four = u64::from(-4_i32 as u32);
    assert_eq!(printed("%-*d|%*d|%p|%7p", &[4, 7, minus_four, 7, 0, 4096]), "7   |7   |(nil)| 0x1000");
    assert_eq!(printed("%hd %hhd %#o %#x", &[70000, 300, 8, 0]), "4464 44 010 0");
    assert_eq!(printed("%k %d|%.*f|%*.*f|%zu|%5|%l", &[1]), "%k 1|%.*f|%*.*f|%zu|%5|%l");
    assert_eq!(printed("%A %.2a %.0a", &[-3.0, 1.999, 1.5].map(float)), "-0X1.8P+1 0x2.00p+0 0x2p+0");
}

/// What an H200 printed.
#[test]
fn as_a_gpu_prints() {
    let float = |value: f64| value.to_bits();
    let (inf, nan) = (float(f64::INFINITY), float(f64::NAN));
    let (one, half) = (float(1.0), float(1.5));
    let (minus_one, minus_six) = (u64::from(u32::MAX), u64::from(-6_i32 as u32));
    let wide = 1 << 40;
    let rows: [(&str, &[u64], &str); 36] = [
        ("%k|%d", &[1], "%k|1"),
        ("%lf %Lf|", &[float(1.25)], "1.250000 %Lf|"),
        ("%5%|%d", &[4], "%|4"),
        ("%05s|%+s|% s|%#s|", &[TEXT; 4], "global!|global!|global!|global!|"),
        ("%+u|% u|%+x|%+o|", &[1, 2, 3, 4], "1|2|3|4|"),
        ("%#x %#o %#X", &[0, 0, 0], "0 0 0"),
        ("%.20f", &[float(0.1)], "0.10000000000000000555"),
        ("%.0f %.0f %.0f %#.0f", &[0.5, 1.5, 2.5, 3.0].map(float), "0 2 2 3."),
        ("%hd|%hu|%hx|", &[70000; 3], "4464|4464|1170|"),
        ("%lx %llx %lX %lo %llo", &[wide, wide, wide, 8, 8], "10000000000 10000000000 10000000000 10 10"),
        ("%.10x|%10.4x|%-10.4x|%010x|", &[255; 4], "00000000ff|      00ff|00ff      |00000000ff|"),
        ("%-05d|%0-5d|%+ d|%010.4d|", &[7; 4], "7    |7    |+7|      0007|"),
        ("%10p|%-10p|%010p|", &[4096; 3], "    0x1000|0x1000    |0x00001000|"),
        ("%.8p|%+p|", &[4096; 2], "0x00001000|+0x1000|"),
        ("%c|%05c|%.3c|", &[0x141, 66, 67], "A|    B|C|"),
        ("%c|", &[0], "\0|"),
        ("%.3s|%10.3s|%-10.3s|%.0s|%.s|", &[TEXT; 5], "glo|       glo|glo       |||"),
        ("%.f|%.e|%.g|", &[half; 3], "2|2e+00|2|"),
        ("%#f %#.0e %#x", &[one, one, 5], "1.000000 1.e+00 0x5"),
        ("%g %g %g", &[123456789.0, 0.00001234, 1.0].map(float), "1.23457e+08 1.234e-05 1"),
        ("%.3g %.10g %.0g", &[float(314_159.0 / 100_000.0); 3], "3.14 3.14159 3"),
        ("%#.3g %g", &[3.0, 1234567.0].map(float), "3.00 1.23457e+06"),
        ("%e %e %e", &[0.0, 1e300, -1e-300].map(float), "0.000000e+00 1.000000e+300 -1.000000e-300"),
        ("%a %a %a", &[0.0, -0.0, 1e10].map(float), "0x0p+0 -0x0p+0 0x1.2a05f2p+33"),
        ("%a", &[1], "0x0.0000000000001p-1022"),
        ("%.0a %.1a %.3a", &[half, float(1.96875), one], "0x2p+0 0x2.0p+0 0x1.000p+0"),
        ("%.20a|%20a|", &[half; 2], "0x1.80000000000000000000p+0|            0x1.8p+0|"),
        ("%-20a|%020a|", &[half; 2], "0x1.8p+0            |0x0000000000001.8p+0|"),
        ("%+a|%#a", &[half, one], "+0x1.8p+0|0x1.p+0"),
        ("%5f|%05f|%-10f|", &[inf, inf, nan], "  inf|  inf|nan       |"),
        ("%+.1e|%010.2e", &[2.0, -2.0].map(float), "+2.0e+00|-02.00e+00"),
        ("%E %G %F %A", &[inf, nan, one, inf], "INF NAN 1.000000 INF"),
        ("%f %f", &[1e22, -0.0].map(float), "10000000000000000000000.000000 -0.000000"),
        ("%0*d|%+*d|", &[6, 3, 6, 3], "000003|    +3|"),
        ("%-*d|%*s|", &[minus_six, 3, 10, TEXT], "3     |   global!|"),
        ("%i %u", &[minus_one; 2], "-1 4294967295"),
    ];
    for (pattern, args, expected) in rows {
        let (text, _) = format(pattern.as_bytes(), &mut List(args.iter())).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected, "{pattern}");
    }
}
