//! The expansion of declarations, conditions, and reports.

use super::axes::{Axes, Axis};
use super::condition::Place;
use super::declaration::Declaration;
use super::expand::{BASE, Planned, Selection, rows};
use super::origin::Origin;
use super::report::{Counts, Earlier, MatrixReport, RowReport, Stale, TestReport};
use crate::detect::{FoundDevice, FoundDriver, Machine};
use crate::runner::{Outcome, Row};

const SMALL: &str = r#"
always.tests = ["axes::*"]
base.groups = ["all"]

[groups.all]
tests = ["*"]
except = ["far::*"]

[groups.far]
tests = ["far::*"]
devices = 2

[[vary]]
axis = "device"
values = ["others"]
groups = ["all"]

[[vary]]
axis = "driver"
values = ["beside"]
groups = ["all"]

[[vary]]
axis = "loading"
values = ["eager"]
groups = ["all", "far"]

[[row]]
name = "watched"
groups = ["all"]
set = { tool = "memcheck", shaping = "auto" }

[[row]]
name = "far"
groups = ["far"]

[tools.memcheck]
arguments = []
patience = 10

[[skip]]
reason = "it breaks the device"
when = { tool = ["memcheck", "racecheck"] }
tests = ["*::breaks"]

[[expected]]
reason = "a fault of the tool"
when = { tool = "memcheck", capability = "9.0", version = ">=12.8, <13.1" }
says = ["illegal address"]
tests = ["a::loops::*", "a::moved"]
"#;

fn declaration() -> Declaration {
    Declaration::parse(SMALL).unwrap()
}

fn driver(name: &str, version: &str, devices: usize) -> FoundDriver {
    let device =
        FoundDevice { name: "H100".to_owned(), capability: Some("9.0".to_owned()), memory: Some(80 << 30) };
    FoundDriver {
        name: name.to_owned(),
        version: Some(version.to_owned()),
        devices: vec![device; devices],
        ..FoundDriver::default()
    }
}

fn machine(devices: usize) -> Machine {
    Machine {
        drivers: vec![driver("system", "13.0", devices)],
        sanitizer: Some("/bin/compute-sanitizer".into()),
        libraries: Vec::new(),
    }
}

fn names(rows: &[Planned]) -> Vec<(&str, bool)> {
    rows.iter().map(|row| (row.name.as_str(), row.skipped.is_none())).collect()
}

#[test]
fn the_declaration_of_this_workspace_can_be_read() {
    let path = crate::workspace().join("tests").join(super::FILE);
    let declaration = Declaration::read(&path).unwrap();
    let all = rows(&declaration, &machine(2), &Selection::default()).unwrap();
    assert!(all.iter().all(|row| row.skipped.is_none() || row.axes.get(Axis::Driver) == "beside"), "{all:?}");
    assert!(all.len() > 10 && all[0].name == BASE);
}

#[test]
fn a_machine_with_one_device_skips_rows_with_reasons() {
    let all = rows(&declaration(), &machine(1), &Selection::default()).unwrap();
    let expected = [
        (BASE, true),
        ("device=others", false),
        ("driver=beside", false),
        ("loading=eager", true),
        ("watched", true),
        ("far", false),
    ];
    assert_eq!(names(&all), expected);
    assert_eq!(all[1].skipped.as_deref(), Some("there is one device"));
    assert_eq!(all[3].groups, ["all"]);
    assert_eq!(all[3].left_out, [("far".to_owned(), "it needs 2 devices, and there are 1".to_owned())]);
    assert!(all[5].skipped.is_some());
}

#[test]
fn each_other_device_and_driver_has_a_row() {
    let mut machine = machine(3);
    machine.drivers.push(driver("/compat/libcuda.so.1", "12.8", 3));
    machine
        .drivers
        .push(FoundDriver { problem: Some("it does not fit".to_owned()), ..driver("/b", "12.4", 0) });
    let all = rows(&declaration(), &machine, &Selection::default()).unwrap();
    let expected = [
        (BASE, true),
        ("device=1", true),
        ("device=2", true),
        ("driver=/compat/libcuda.so.1", true),
        ("driver=/b", false),
        ("loading=eager", true),
        ("watched", true),
        ("far", true),
    ];
    assert_eq!(names(&all), expected);
    assert_eq!((all[2].device, all[3].driver), (2, 1));
    let one = Selection { device: Some(1), ..Selection::default() };
    let all = rows(&declaration(), &machine, &one).unwrap();
    assert_eq!((all[0].device, all[1].name.as_str(), all[1].skipped.is_some()), (1, "device=others", true));
}

#[test]
fn the_device_of_the_command_line_is_used_with_every_driver_that_has_it() {
    let mut machine = machine(2);
    for (name, devices) in [("/two", 2), ("/one", 1), ("/none", 0)] {
        machine.drivers.push(driver(name, "12.8", devices));
    }
    let select = |device| Selection { rows: vec!["driver=beside".to_owned()], quick: false, device };
    let all = rows(&declaration(), &machine, &select(Some(1))).unwrap();
    assert_eq!(names(&all), [("driver=/two", true), ("driver=/one", false), ("driver=/none", false)]);
    assert_eq!((all[0].driver, all[0].device), (1, 1));
    let reason = all[1].skipped.as_deref().unwrap_or_default();
    assert!(reason.contains("names device 1") && reason.contains("finds 1 in all"), "{reason}");
    assert_eq!(all[2].skipped.as_deref(), Some("the driver finds no device"));
    let all = rows(&declaration(), &machine, &select(None)).unwrap();
    assert_eq!(names(&all), [("driver=/two", true), ("driver=/one", true), ("driver=/none", false)]);
}

#[test]
fn groups_of_one_device_are_left_out_of_rows_of_others() {
    let text = SMALL.replace("except = [\"far::*\"]", "except = [\"far::*\"]\nonly_device = 0");
    let declaration = Declaration::parse(&text).unwrap();
    let all = rows(&declaration, &machine(2), &Selection::default()).unwrap();
    assert_eq!((all[0].skipped.as_deref(), all[0].left_out.len()), (None, 0));
    let reason = "its tests use device 0 alone, and the row is for device 1";
    assert_eq!((all[1].name.as_str(), all[1].skipped.as_deref()), ("device=1", Some(reason)));
    let one = Selection { device: Some(1), ..Selection::default() };
    let eager = rows(&declaration, &machine(2), &one).unwrap().remove(3);
    assert_eq!((eager.name.as_str(), eager.groups.as_slice()), ("loading=eager", &["far".to_owned()][..]));
    assert_eq!(eager.left_out, [("all".to_owned(), reason.to_owned())]);
}

#[test]
fn rows_are_chosen_by_name() {
    let select = |rows: &[&str], quick| Selection {
        rows: rows.iter().map(ToString::to_string).collect(),
        quick,
        device: None,
    };
    let chosen = rows(&declaration(), &machine(1), &select(&["watched", BASE], false)).unwrap();
    assert_eq!(names(&chosen), [(BASE, true), ("watched", true)]);
    assert_eq!(names(&rows(&declaration(), &machine(1), &select(&[], true)).unwrap()), [(BASE, true)]);
    let mut several = machine(3);
    several.drivers.push(driver("/compat/libcuda.so.1", "12.8", 3));
    let chosen = rows(&declaration(), &several, &select(&["device=others"], false)).unwrap();
    assert_eq!(names(&chosen), [("device=1", true), ("device=2", true)]);
    let error = rows(&declaration(), &machine(1), &select(&["none"], false)).unwrap_err().to_string();
    assert!(error.contains("no row `none`") && error.contains("loading=eager"), "{error}");
}

#[test]
fn a_row_without_its_tool_is_skipped() {
    let mut machine = machine(1);
    machine.sanitizer = None;
    let reason = |machine: &Machine| {
        let all = rows(&declaration(), machine, &Selection::default()).unwrap();
        all[4].skipped.clone().unwrap_or_default()
    };
    assert!(reason(&machine).contains("CUDA_SANITIZER"));
    machine.drivers[0].name = "soft".to_owned();
    machine.sanitizer = Some("/bin/compute-sanitizer".into());
    assert!(reason(&machine).contains("software driver"));
}

#[test]
fn mistakes_in_a_declaration_are_told() {
    for (from, to, words) in [
        ("values = [\"eager\"]", "values = [\"late\"]", "no value `late`; it has lazy, eager"),
        ("groups = [\"far\"]", "groups = [\"near\"]", "no group `near`"),
        (">=12.8, <13.1", "new", "`new` is no range of versions"),
        ("says =", "tells =", "unknown field `tells`"),
        ("capability = \"9.0\"", "color = \"red\"", "color"),
        ("shaping = \"auto\"", "shape = \"auto\"", "unknown variant `shape`"),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let error = Declaration::parse(&SMALL.replace(from, to)).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{words}: {error:#}");
    }
}

#[test]
fn tests_are_told_of_the_axes_by_their_environment() {
    let of = |axes: &Axes| {
        let all = axes.environment(1, 1).into_iter();
        all.filter_map(|(name, value)| Some(format!("{name}={}", value?.to_str()?))).collect::<Vec<_>>()
    };
    assert_eq!(of(&Axes::default()), ["CUDA_TEST_DEVICE=1", "CUDA_MODULE_LOADING=LAZY"]);
    let axes = Axes::default().with(Axis::Loading, "eager").with(Axis::DefaultStream, "per-thread");
    let axes = axes.with(Axis::Shaping, "auto").with(Axis::Conditionals, "host");
    let expected = [
        "CUDA_TEST_DEVICE=1",
        "CUDA_MODULE_LOADING=EAGER",
        "CUDA_TEST_DEFAULT_STREAM=per-thread",
        "CUDA_TEST_CONDITIONALS=host",
        "CUDA_TEST_SHAPE=auto",
    ];
    assert_eq!(of(&axes), expected);
}

fn test(name: &str, outcome: Outcome, output: &str) -> Row {
    let (suite, test) = name.split_once("::").unwrap();
    Row {
        suite: suite.to_owned(),
        test: test.to_owned(),
        outcome,
        seconds: 0.5,
        output: output.to_owned(),
        flaky: None,
    }
}

fn failed(name: &str, output: &str) -> Row {
    test(name, Outcome::Failed { reason: "exit code 101".to_owned() }, output)
}

#[test]
fn a_failure_is_expected_where_its_condition_holds_and_says_what_is_known() {
    let (declaration, watched) = (declaration(), Axes::default().with(Axis::Tool, "memcheck"));
    let is_expected = |machine: &Machine, axes: &Axes, row: &Row| {
        declaration.expected(row, &Place::new(machine, axes, 0, 0)).is_some()
    };
    let known = failed("a::loops::one", "illegal address");
    assert!(is_expected(&machine(1), &watched, &known));
    assert!(!is_expected(&machine(1), &Axes::default(), &known));
    assert!(!is_expected(&machine(1), &watched, &failed("a::loops::one", "wrong sum")));
    assert!(!is_expected(&machine(1), &watched, &failed("a::others::one", "illegal address")));
    for (version, capability, expected) in
        [("12.8", "9.0", true), ("12.7", "9.0", false), ("13.1", "9.0", false), ("13.0", "8.0", false)]
    {
        let mut machine = machine(1);
        machine.drivers[0].version = Some(version.to_owned());
        machine.drivers[0].devices[0].capability = Some(capability.to_owned());
        assert_eq!(is_expected(&machine, &watched, &known), expected, "{version} {capability}");
    }
    let mut unknown = machine(1);
    unknown.drivers[0].version = None;
    assert!(!is_expected(&unknown, &watched, &known));
}

#[test]
fn a_test_is_skipped_where_its_condition_holds() {
    let (declaration, machine) = (declaration(), machine(1));
    let watched = Axes::default().with(Axis::Tool, "racecheck");
    let reason =
        |axes: &Axes, test| declaration.skip_reason(test, &Place::new(&machine, axes, 0, 0)).is_some();
    assert!(reason(&watched, "a::b::breaks") && !reason(&watched, "a::b::works"));
    assert!(!reason(&Axes::default(), "a::b::breaks"));
}

/// A row with a test of each outcome.
fn row() -> RowReport {
    let declaration = declaration();
    let all = rows(&declaration, &machine(1), &Selection::default()).unwrap();
    let mut report = RowReport::new(&all[4]);
    report.seconds = 2.0;
    let as_it_was = |row: Row| {
        let (machine, axes) = (machine(1), report.axes.clone());
        let expected = declaration.expected(&row, &Place::new(&machine, &axes, 0, 0));
        TestReport { expected: expected.map(|expected| expected.reason.clone()), row }
    };
    report.tests = vec![
        as_it_was(test("a::works", Outcome::Passed, "")),
        as_it_was(failed("a::others::one", "wrong <sum>\n\u{1b}[31m```\u{0}")),
        as_it_was(failed("a::loops::one", "illegal address")),
        as_it_was(test("a::far", Outcome::Skipped { reason: "there is one device".to_owned() }, "")),
        as_it_was(test("a::moved", Outcome::Passed, "")),
        as_it_was(Row {
            flaky: Some("exit code 101".to_owned()),
            ..test("a::slow", Outcome::Passed, "late")
        }),
    ];
    report
}

fn stale(row: &mut RowReport) -> &[Stale] {
    let (machine, axes) = (machine(1), row.axes.clone());
    row.find_stale(&declaration(), &Place::new(&machine, &axes, 0, 0));
    &row.stale
}

fn report() -> MatrixReport {
    let (declaration, machine, mut row) = (declaration(), machine(1), row());
    stale(&mut row);
    let all = rows(&declaration, &machine, &Selection::default()).unwrap();
    let origin = Origin {
        version: "0.1.0".to_owned(),
        commit: Some("abc".to_owned()),
        began: "2026-01-02T03:04:05Z".to_owned(),
        ended: "2026-01-02T03:14:05Z".to_owned(),
    };
    let rows = vec![row, RowReport::new(&all[1]), RowReport::new(&all[3])];
    MatrixReport { origin, machine, rows, unmatched: vec!["a::gone (group all)".to_owned()] }
}

#[test]
fn a_declared_failure_that_passes_is_stale() {
    let report = report();
    assert_eq!(report.rows[0].stale.len(), 1);
    assert_eq!(report.rows[0].stale[0].tests, "a::moved");
    assert_eq!(report.total(), Counts { passed: 3, flaky: 1, failed: 1, expected: 1, skipped: 1 });
    let mut row = row();
    row.tests.retain(|test| test.row.outcome == Outcome::Passed || test.expected.is_some());
    row.tests.retain(|test| test.row.test != "moved");
    assert!(stale(&mut row).is_empty());
    // One that did not run says nothing, nor do patterns of several tests of which some did not
    // run, nor one that passed when it was run again.
    row.tests.retain(|test| test.expected.is_none());
    row.tests.push(TestReport { row: test("a::loops::two", Outcome::Passed, ""), expected: None });
    assert_eq!(stale(&mut row).len(), 1);
    row.left = 1;
    assert!(stale(&mut row).is_empty());
    (row.left, row.filter) = (0, vec!["loops".to_owned()]);
    assert!(stale(&mut row).is_empty());
    row.filter.clear();
    row.tests.iter_mut().for_each(|test| test.row.flaky = Some("exit code 101".to_owned()));
    assert!(stale(&mut row).is_empty());
}

#[test]
fn the_exit_code_and_the_last_line_tell_how_a_run_has_ended() {
    let verdict = |change: &dyn Fn(&mut MatrixReport)| {
        let mut report = report();
        report.rows[0].tests.retain(|test| !test.row.has_failed() || test.expected.is_some());
        report.rows[0].stale.clear();
        change(&mut report);
        let verdict = report.verdict();
        (verdict.code, verdict.words)
    };
    let good = "3 passed (1 flaky), 0 failed, 1 expected, 1 skipped".to_owned();
    assert_eq!(verdict(&|_| {}), (0, good.clone()));
    assert_eq!(self::report().verdict().code, 1);
    assert!(self::report().verdict().words.ends_with(", 1 declared to fail and passed"));
    let (code, words) = verdict(&|report| report.rows[2].left = 7);
    assert_eq!((code, words), (3, good + "; 7 tests are left, which --resume runs"));
    let (code, words) = verdict(&|report| report.rows[0].tests.clear());
    assert!(code == 1 && words.ends_with("no test ran: none has such a name"), "{words}");
    let (code, words) = verdict(&|report| {
        report.rows[0].tests.retain(|test| matches!(test.row.outcome, Outcome::Skipped { .. }));
    });
    assert!(code == 1 && words.ends_with("no test ran: all were skipped"), "{words}");
    let (code, words) =
        verdict(&|report| report.rows = report.rows.split_off(1).into_iter().take(1).collect());
    assert!(code == 1 && words.ends_with("no row can run here"), "{words}");
}

#[test]
fn a_run_goes_on_with_an_earlier_report_of_the_same_build_and_machine() {
    let text = serde_json::to_string(&report()).unwrap();
    let earlier = || Earlier::parse(&text).unwrap();
    let mut now = MatrixReport { rows: Vec::new(), ..report() };
    earlier().go_on(&mut now).unwrap();
    assert_eq!(serde_json::to_string(&now).unwrap(), text);
    let refused = |change: &dyn Fn(&mut MatrixReport)| {
        let mut now = MatrixReport { rows: Vec::new(), ..report() };
        change(&mut now);
        earlier().go_on(&mut now).unwrap_err().to_string()
    };
    let other = refused(&|now| now.origin.commit = Some("def".to_owned()));
    assert!(other.contains("another build: 0.1.0 (abc) then, 0.1.0 (def) now"), "{other}");
    let other = refused(&|now| now.machine = machine(2));
    assert!(other.contains("another machine"), "{other}");
    let other = refused(&|now| now.machine.drivers[0].version = Some("12.9".to_owned()));
    assert!(other.contains("another driver: 13.0 then, 12.9 now"), "{other}");
}

#[test]
fn patterns_that_name_no_test_are_told() {
    let names = ["axes::one", "far::one", "a::b::breaks", "a::moved"].map(str::to_owned);
    assert_eq!(declaration().unmatched(&names), ["a::loops::* (expected, a fault of the tool)"]);
}

/// Compares a text with the file that keeps it. With `XTASK_WRITE_REPORTS` set, writes the file.
#[track_caller]
fn assert_is_kept(name: &str, text: &str) {
    let file = crate::workspace().join("xtask/src/matrix/tests").join(name);
    if std::env::var_os("XTASK_WRITE_REPORTS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), text);
}

#[test]
fn reports_are_written_as_they_were() {
    let folder = std::env::temp_dir().join(format!("xtask-report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    report().write(&folder).unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["junit.xml", "matrix.json", "matrix.md"]);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (markdown, xml, json) = (read("matrix.md"), read("junit.xml"), read("matrix.json"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_is_kept("matrix.md", &markdown);
    assert_is_kept("junit.xml", &xml);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["machine"]["drivers"][0]["devices"][0]["capability"], "9.0");
    assert_eq!(json["rows"][0]["axes"], serde_json::json!({ "shaping": "auto", "tool": "memcheck" }));
    assert_eq!(json["rows"][0]["tests"][2]["expected"], "a fault of the tool");
    assert_eq!(json["rows"][0]["tests"][2]["outcome"], "failed");
    assert_eq!(json["rows"][1]["skipped"], "there is one device");
    assert_eq!(json["origin"]["commit"], "abc");
}
