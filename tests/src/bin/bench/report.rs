//! The report: a table, or lines of JSON.

use cuda_handles::Device;

use crate::Outcome;
use crate::driver::Choice;
use crate::measure::Measured;

/// Prints the head of the table.
pub(crate) fn header(driver: &Choice) -> Outcome<()> {
    driver_and_device(driver)?;
    println!(
        "nanoseconds of the host for one operation, medians; over: what the library adds, and the spread of that\n"
    );
    println!(
        "{:40} {:>7} {:>9} {:>9} {:>9} {:>7} {:>7}",
        "operation", "driver", "ours", "raw", "over", "spread", "ratio"
    );
    Ok(())
}

/// The driver and the device that are measured.
pub(crate) fn driver_and_device(driver: &Choice) -> Outcome<()> {
    if *driver != Choice::Null {
        let device = Device::new(0)?;
        println!("driver  CUDA {} from {}", device.driver().version(), device.driver().origin());
        println!("device  {}", device.name()?);
    }
    Ok(())
}

/// A row of the table.
pub(crate) fn row(name: &str, driver: &Choice, measured: &Measured) {
    let Measured { ours, raw, over, spread } = measured;
    let ratio = measured.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    let driver = driver.to_string();
    println!("{name:40} {driver:>7} {ours:9.1} {raw:9.1} {over:9.1} {spread:7.1} {ratio:>7}");
}

/// A line of JSON.
pub(crate) fn json(name: &str, driver: &Choice, measured: &Measured) {
    println!("{}", line(name, &driver.to_string(), measured));
}

fn line(name: &str, driver: &str, measured: &Measured) -> String {
    let Measured { ours, raw, over, spread } = measured;
    let ratio = measured.ratio().map_or_else(|| "null".to_owned(), |ratio| format!("{ratio:.3}"));
    format!(
        "{{\"name\":{},\"driver\":{},\"ours_ns\":{ours:.2},\"raw_ns\":{raw:.2},\"over_ns\":{over:.2},\"ratio\":{ratio},\"spread_ns\":{spread:.2}}}",
        quoted(name),
        quoted(driver)
    )
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().flat_map(|letter| match letter {
        '"' | '\\' => vec!['\\', letter],
        letter if letter.is_control() => vec![' '],
        letter => vec![letter],
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json_has_every_field() {
        let measured = Measured { ours: 12.5, raw: 10.0, over: 2.5, spread: 0.25 };
        assert_eq!(
            line("graph launch", "a\\\"b", &measured),
            r#"{"name":"graph launch","driver":"a\\\"b","ours_ns":12.50,"raw_ns":10.00,"over_ns":2.50,"ratio":1.250,"spread_ns":0.25}"#
        );
    }
}
