//! The chart of the benchmark: horizontal bars on a logarithmic axis, reads beside edits, grouped by file size. The SVG
//! has no scripts and no fonts, and is legible on light and dark pages.

use std::time::Duration;

use crate::bench::calls::Kind;
use crate::bench::report::Report;
use crate::measurement::ServerId;

/// The kind of a bar, which decides its look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// The server under test.
    Ours,
    /// The bare server, which is too simple for real use.
    Floor,
    Peer,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Floor => "floor",
            Self::Peer => "peer",
        }
    }
}

pub(super) struct Bar {
    /// The name of the server.
    pub label: String,
    pub tone: Tone,
    /// The median of the calls.
    pub time: Duration,
}

pub(super) struct Group {
    /// The size of the files.
    pub label: &'static str,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

pub(super) struct Panel {
    /// The kind of call.
    pub title: &'static str,
    pub groups: Vec<Group>,
}

pub(super) fn panels(report: &Report) -> [Panel; 2] {
    [("Read a file", Kind::Read), ("Edit a file", Kind::Edit)].map(|(title, kind)| {
        let rows = report.calls.iter().filter(|row| row.kind == kind);
        let groups = rows.map(|row| {
            let bars = report.names.by_server().zip(row.times.iter()).map(|((server, name), times)| {
                let (tone, label) = match server {
                    ServerId::Surehand => (Tone::Ours, name.clone()),
                    ServerId::Floor => (Tone::Floor, name.clone()),
                    ServerId::Peer(peer) => (Tone::Peer, report.peer_label(peer)),
                };
                Bar { label, tone, time: times.p50 }
            });
            Group { label: row.size, bars: bars.collect() }
        });
        Panel { title, groups: groups.collect() }
    })
}

/// Width of the picture.
const WIDTH: f64 = 960.0;
/// Where the first panel begins.
const MARGIN: f64 = 16.0;
/// Width of the names left of the bars.
const NAMES: f64 = 104.0;
/// Width of the numbers right of the longest bar.
const NUMBERS: f64 = 60.0;
/// The gap between two panels.
const GUTTER: f64 = 24.0;
/// Height of a bar and from one to the next.
const BAR: f64 = 11.0;
const STEP: f64 = 16.0;
/// Height of the name of a group, and the space below a group.
const HEADING: f64 = 22.0;
const SPACE: f64 = 12.0;
/// Where the bars begin, below the titles.
const TOP: f64 = 74.0;
/// Height of the numbers of the axis.
const AXIS: f64 = 30.0;

/// The colours, and those for a dark page. Values have an outline in the colour of the page, so that no grid line
/// crosses them.
const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;fill:#1f2328}\
.title{font-size:15px;font-weight:600}.kind{font-size:13px;font-weight:600}.size{font-weight:600}\
.note,.axis{fill:#59636e}.axis{font-size:11px}.value{font-size:11px;fill:#59636e;stroke:#fff;stroke-width:3px;paint-order:stroke}\
.strong{font-weight:600;fill:#0b6bcb}\
.grid{stroke:#dfe4ea;stroke-width:1}\
.ours{fill:#0b6bcb}.peer{fill:#afb8c1}.floor{fill:none;stroke:#818b98;stroke-width:1;stroke-dasharray:3 2}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note,.axis,.value{fill:#9198a1}.value{stroke:#0d1117}.strong{fill:#58a6ff}\
.grid{stroke:#2d333b}.ours{fill:#58a6ff}.peer{fill:#656c76}.floor{stroke:#9198a1}}";

/// Draws the panels side by side, with the same axis.
pub(super) fn draw(title: &str, note: &str, panels: &[Panel]) -> String {
    let times = || panels.iter().flat_map(|panel| &panel.groups).flat_map(|group| &group.bars).map(|bar| bar.time);
    let (least, most) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
    let width = (WIDTH - 2.0 * MARGIN - GUTTER * (panels.len() as f64 - 1.0)) / panels.len() as f64;
    let scale = Scale::new(least, most, width - NAMES - NUMBERS);
    let bottom = TOP + panels.iter().map(height).fold(0.0, f64::max);
    let mut svg = String::new();
    let mut put = |element: &str| svg.push_str(&format!("{element}\n"));
    let height = bottom + AXIS;
    put(&format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{}">"#,
        escaped(title)
    ));
    put(&format!("<style>{STYLE}</style>"));
    put(&text(MARGIN, 24.0, "title", "start", title));
    put(&text(MARGIN, 43.0, "note", "start", note));
    for (place, panel) in panels.iter().enumerate() {
        put(&draw_panel(panel, &scale, MARGIN + place as f64 * (width + GUTTER), bottom));
    }
    svg.push_str("</svg>\n");
    svg
}

/// The bars of a panel from its top to its bottom.
fn height(panel: &Panel) -> f64 {
    panel.groups.iter().map(|group| HEADING + group.bars.len() as f64 * STEP + SPACE).sum()
}

fn draw_panel(panel: &Panel, scale: &Scale, left: f64, bottom: f64) -> String {
    let start = left + NAMES;
    let mut elements = vec![text(start, TOP - 8.0, "kind", "start", panel.title)];
    for (tick, label) in scale.ticks() {
        let x = start + tick;
        elements.push(format!(r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="{TOP}" y2="{bottom}"/>"#));
        elements.push(text(x, bottom + 18.0, "axis", "middle", &label));
    }
    let mut y = TOP;
    for group in &panel.groups {
        elements.push(text(left, y + 16.0, "size", "start", group.label));
        y += HEADING;
        for bar in &group.bars {
            elements.push(draw_bar(bar, scale, left, y));
            y += STEP;
        }
        y += SPACE;
    }
    elements.join("\n")
}

fn draw_bar(bar: &Bar, scale: &Scale, left: f64, y: f64) -> String {
    let (start, length, baseline) = (left + NAMES, scale.length(bar.time), y + BAR - 1.0);
    let (name, value) = if bar.tone == Tone::Ours { ("strong", "value strong") } else { ("note", "value") };
    [
        text(start - 8.0, baseline, name, "end", &bar.label),
        format!(r#"<rect class="{}" x="{start:.1}" y="{y:.1}" width="{length:.1}" height="{BAR}" rx="2"/>"#, bar.tone.class()),
        text(start + length + 6.0, baseline, value, "start", &for_people(bar.time)),
    ]
    .concat()
}

fn text(x: f64, y: f64, class: &str, anchor: &str, words: &str) -> String {
    let words = escaped(words);
    format!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#)
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `640 ns`, `21 µs`, `1.8 ms`, `17 ms`.
fn for_people(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        _ if micros < 1.0 => format!("{:.0} ns", micros * 1e3),
        _ if micros < 999.5 => format!("{micros:.0} µs"),
        _ if micros < 9_950.0 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.0} ms", micros / 1e3),
    }
}

/// A logarithmic axis that starts at a power of ten.
struct Scale {
    /// The exponent of its start, in microseconds.
    first: i32,
    /// The number of powers of ten; the last may be partial.
    decades: f64,
    width: f64,
}

impl Scale {
    /// An axis of this width for times from `least` to `most`.
    fn new(least: Duration, most: Duration, width: f64) -> Self {
        let exponent = |time: Duration| (time.as_secs_f64() * 1e6).max(0.001).log10();
        let first = exponent(least).floor();
        Self { first: first as i32, decades: (exponent(most) - first).max(1.0), width }
    }

    /// The length of the bar for a time.
    fn length(&self, time: Duration) -> f64 {
        let exponent = (time.as_secs_f64() * 1e6).max(0.001).log10();
        (exponent - f64::from(self.first)).max(0.0) / self.decades * self.width
    }

    /// The powers of ten on the axis, with their positions and labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        let last = self.first + self.decades.floor() as i32;
        let time = |power: i32| Duration::from_secs_f64(10_f64.powi(power) / 1e6);
        let name = |power: i32| if power >= 3 { format!("{} ms", 10_u64.pow(power as u32 - 3)) } else { for_people(time(power)) };
        (self.first..=last).map(|power| (self.length(time(power)), name(power))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[track_caller]
    fn check(scale: &Scale, n: u64, expected: f64) {
        let length = scale.length(micros(n));
        assert!((length - expected).abs() < 0.01, "{n} µs: {length}");
    }

    #[test]
    fn ten_times_as_long_is_one_step_on_the_axis() {
        let scale = Scale::new(micros(13), micros(10_000), 300.0);
        check(&scale, 10, 0.0);
        check(&scale, 100, 100.0);
        check(&scale, 1_000, 200.0);
        check(&scale, 10_000, 300.0);
    }

    #[test]
    fn powers_of_ten_are_marked_from_the_beginning_to_the_longest_bar() {
        let scale = Scale::new(micros(13), micros(17_000), 300.0);
        let names: Vec<_> = scale.ticks().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["10 µs", "100 µs", "1 ms", "10 ms"]);
    }

    #[test]
    fn times_are_written_with_two_digits_or_as_whole_numbers() {
        let said = [640, 21_000, 999_400, 999_600, 1_840_000, 17_400_000].map(|nanos| for_people(Duration::from_nanos(nanos)));
        assert_eq!(said, ["640 ns", "21 µs", "999 µs", "1.0 ms", "1.8 ms", "17 ms"]);
    }

    #[test]
    fn what_is_drawn_is_escaped_and_complete() {
        let bar = |label: &str, tone, n| Bar { label: label.into(), tone, time: micros(n) };
        let bars = vec![bar("ours & more", Tone::Ours, 20), bar("floor", Tone::Floor, 10), bar("<peer>", Tone::Peer, 900)];
        let svg = draw("title", "note", &[Panel { title: "Read", groups: vec![Group { label: "1 KB", bars }] }]);
        assert_eq!(svg.matches("<rect ").count(), 3);
        assert!(svg.contains("ours &amp; more") && svg.contains("&lt;peer&gt;"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
