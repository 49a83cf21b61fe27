//! The report: markdown tables for the page about the economy, or one JSON object for programs.

use serde_json::{Value, json};

use super::change::Contact;
use super::dialect::{DIALECTS, Dialect};
use super::play::{AROUND, Again, Cost, End, OUTPUT_PRICE, READINGS, Reading, STRATEGIES, Strategy};
use super::tally::{Group, Sample, Tally, median};
use crate::table::{table, wrap};

/// Classes of sizes of files or edits, in lines: from, below, and the name.
type Sizes = [(usize, usize, &'static str); 4];
const FILE_SIZES: Sizes =
    [(0, 100, "below 100"), (100, 300, "100 to 299"), (300, 1000, "300 to 999"), (1000, usize::MAX, "1000 and more")];
const EDIT_SIZES: Sizes = [(0, 1, "none"), (1, 3, "1 or 2"), (3, 11, "3 to 10"), (11, usize::MAX, "11 and more")];

impl Tally {
    /// Tables with a line before each.
    pub(crate) fn to_markdown(&self) -> String {
        let price = format!("cost = input tokens + {OUTPUT_PRICE} × output tokens");
        let parts = [
            "### Where the edits come from".to_owned(),
            self.sources_table(),
            format!("### Without outside changes\n\nTokens of an edit, from the first read to the correct content, by o200k; {price}:"),
            self.quiet_table(),
            "Median cost of an edit by the length of the file in lines; the model reads the whole file:".to_owned(),
            self.by_size(&FILE_SIZES, |sample| sample.lines, Sample::total, Reading::Whole),
            format!("The same if the model reads only the changed lines and {AROUND} around them:"),
            self.by_size(&FILE_SIZES, |sample| sample.lines, Sample::total, Reading::Needed),
            "Median cost after the read, by the number of lines that the edit replaces or removes:".to_owned(),
            self.by_size(&EDIT_SIZES, |sample| sample.replaced, Sample::rest, Reading::Whole),
            "### With an outside change between read and edit\n\nExtra cost compared with the undisturbed edit: mean (median), and the ratio of the means. \
             The model reads the whole file, and all of it again if it reads it again:"
                .to_owned(),
            self.extra_table(Reading::Whole),
            self.chart(),
            format!("The model reads only the changed lines and {AROUND} around them, both times:"),
            self.extra_table(Reading::Needed),
            "Mean total cost, from the first read to the correct content:".to_owned(),
            self.total_table(),
            "The same by source: mean extra cost with str_replace, a call each, and the ratio; the model reads the whole file:".to_owned(),
            self.source_table(),
            "The input part of that: mean extra input tokens with str_replace:".to_owned(),
            self.input_table(),
            "### Final content of the file\n\nWith \"read again\" and with Surehand's defaults, every edit ended with the content that a writer who saw \
             everything would have produced. Without a gate, and with rebase, these did not; the model reads the whole file:"
                .to_owned(),
            self.ends_table(),
            "### Repeated calls\n\nMedian tokens:".to_owned(),
            self.again_table(),
        ];
        parts.map(|part| wrap(&part) + "\n").join("\n")
    }

    fn sources_table(&self) -> String {
        let header =
            ["source", "files", "edits", "after a change elsewhere", "after a change of the same lines", "too large", "not made"];
        let rows = self.sources.iter().map(|source| {
            let counts = [source.files, source.edits, source.elsewhere, source.same_lines, source.too_large, source.unmade];
            let [files, edits, elsewhere, same, large, unmade] = counts.map(|count| count.to_string());
            [source.name.clone(), files, edits, elsewhere, same, large, unmade]
        });
        table(1, header, rows)
    }

    fn quiet(&self, dialect: Dialect, reading: Reading) -> Group<'_> {
        self.of(move |sample| sample.contact.is_none() && sample.dialect == dialect && sample.reading == reading)
    }

    fn outside(&self, contact: Contact, dialect: Dialect, reading: Reading, strategy: Strategy) -> Group<'_> {
        self.of(move |sample| {
            sample.contact == Some(contact) && (sample.dialect, sample.reading, sample.strategy) == (dialect, reading, strategy)
        })
    }

    fn quiet_table(&self) -> String {
        let header = ["dialect", "calls", "output", "input", "cost, mean", "cost, median", "reads what it needs: mean", "median"];
        let rows = DIALECTS.map(|dialect| {
            let (whole, needed) = (self.quiet(dialect, Reading::Whole), self.quiet(dialect, Reading::Needed));
            [
                dialect.name().to_owned(),
                format!("{:.1}", whole.mean(|sample| calls(sample) as f64)),
                number(whole.mean(|sample| both(sample, |cost| cost.output))),
                number(whole.mean(|sample| both(sample, |cost| cost.input))),
                number(whole.mean(Sample::total)),
                number(whole.median(Sample::total)),
                number(needed.mean(Sample::total)),
                number(needed.median(Sample::total)),
            ]
        });
        table(1, header, rows)
    }

    fn by_size(&self, sizes: &Sizes, size: fn(&Sample) -> usize, of: fn(&Sample) -> f64, reading: Reading) -> String {
        let group = |dialect: Dialect, (from, below, _): (usize, usize, &str)| {
            self.of(move |sample| {
                let is_so = sample.contact.is_none() && sample.dialect == dialect && sample.reading == reading;
                is_so && (from..below).contains(&size(sample))
            })
        };
        let names = sizes.map(|(_, _, name)| name);
        let counts = sizes.map(|size| group(Dialect::Replace, size).count().to_string());
        let edits = row("edits", counts);
        let rows = DIALECTS.map(|dialect| row(dialect.name(), sizes.map(|size| number(group(dialect, size).median(of)))));
        table(1, ["lines", names[0], names[1], names[2], names[3]], [edits].into_iter().chain(rows))
    }

    fn extra_table(&self, reading: Reading) -> String {
        let header = [
            "outside change",
            "dialect",
            "read again",
            "Surehand",
            "/ read again",
            "one call more",
            "rebase",
            "/ read again",
            "no call more",
        ];
        let rows = contacts().flat_map(|contact| DIALECTS.map(|dialect| (contact, dialect))).map(|(contact, dialect)| {
            let group = |strategy| self.outside(contact, dialect, reading, strategy);
            let [again, repair, rebase] =
                [Strategy::Reread, Strategy::Repair, Strategy::Rebase].map(|one| group(one).mean(Sample::extra));
            let rebased = group(Strategy::Rebase);
            let more_calls = |sample: &Sample| sample.outcome.rest.calls as i64 - sample.undisturbed.calls as i64;
            let cell = |strategy: Strategy| mean_and_median(&group(strategy), Sample::extra);
            [
                name(contact).to_owned(),
                dialect.name().to_owned(),
                cell(Strategy::Reread),
                cell(Strategy::Repair),
                ratio(repair, again),
                format!("{:.0} %", group(Strategy::Repair).share(|sample| more_calls(sample) == 1)),
                cell(Strategy::Rebase),
                ratio(rebase, again),
                format!("{:.0} %", rebased.share(|sample| more_calls(sample) == 0)),
            ]
        });
        table(2, header, rows)
    }

    /// The means of the most usual case as bars.
    fn chart(&self) -> String {
        const WIDTH: f64 = 60.0;
        let strategies = [Strategy::Reread, Strategy::Repair, Strategy::Rebase];
        let means = strategies
            .map(|strategy| self.outside(Contact::Elsewhere, Dialect::Replace, Reading::Whole, strategy).mean(Sample::extra));
        let most = means.iter().copied().fold(1.0, f64::max);
        let bar = |(strategy, mean): (&Strategy, &f64)| {
            let length = (mean / most * WIDTH).round().max(1.0) as usize;
            format!("{:<16} {} {}\n", strategy_name(*strategy), "█".repeat(length), number(*mean))
        };
        let bars: String = strategies.iter().zip(&means).map(bar).collect();
        format!("```text\nmean extra cost of an edit by str_replace after a change of other lines\n{bars}```")
    }

    fn total_table(&self) -> String {
        let header =
            ["outside change", "dialect", "read again", "Surehand", "rebase", "what it needs: read again", "Surehand", "rebase"];
        let rows = contacts().flat_map(|contact| DIALECTS.map(|dialect| (contact, dialect))).map(|(contact, dialect)| {
            let total = |reading, strategy| number(self.outside(contact, dialect, reading, strategy).mean(Sample::total));
            let of = |reading| [Strategy::Reread, Strategy::Repair, Strategy::Rebase].map(|strategy| total(reading, strategy));
            let ([a, b, c], [d, e, f]) = (of(Reading::Whole), of(Reading::Needed));
            [name(contact).to_owned(), dialect.name().to_owned(), a, b, c, d, e, f]
        });
        table(2, header, rows)
    }

    fn source_table(&self) -> String {
        let header = ["source", "outside change", "read again", "Surehand", "/ read again", "rebase", "/ read again"];
        let places =
            self.sources.iter().enumerate().flat_map(|(index, source)| contacts().map(move |contact| (index, source, contact)));
        let rows = places.map(|(index, source, contact)| {
            let extra = |strategy: Strategy| {
                let wanted = (Some(contact), Dialect::Replace, Reading::Whole, strategy, index);
                let key = |sample: &Sample| (sample.contact, sample.dialect, sample.reading, sample.strategy, sample.source);
                let group = self.of(move |sample| key(sample) == wanted);
                group.mean(Sample::extra)
            };
            let [again, repair, rebase] = [Strategy::Reread, Strategy::Repair, Strategy::Rebase].map(extra);
            let (repair_ratio, rebase_ratio) = (ratio(repair, again), ratio(rebase, again));
            let numbers = [number(again), number(repair), repair_ratio, number(rebase), rebase_ratio];
            let [again, repair, repair_ratio, rebase, rebase_ratio] = numbers;
            [source.name.clone(), name(contact).to_owned(), again, repair, repair_ratio, rebase, rebase_ratio]
        });
        table(2, header, rows)
    }

    fn input_table(&self) -> String {
        let header = ["outside change", "reads", "read again", "Surehand", "rebase"];
        let rows = contacts().flat_map(|contact| READINGS.map(|reading| (contact, reading))).map(|(contact, reading)| {
            let input = |strategy| {
                let group = self.outside(contact, Dialect::Replace, reading, strategy);
                number(group.mean(|sample| sample.outcome.rest.input as f64 - sample.undisturbed.input as f64))
            };
            let [again, repair, rebase] = [Strategy::Reread, Strategy::Repair, Strategy::Rebase].map(input);
            [name(contact).to_owned(), reading_name(reading).to_owned(), again, repair, rebase]
        });
        table(2, header, rows)
    }

    fn ends_table(&self) -> String {
        let header = [
            "dialect",
            "no gate: other lines",
            "in another order",
            "no gate: the same lines",
            "in another order",
            "rebase, in another order",
        ];
        let rows = DIALECTS.map(|dialect| {
            let [elsewhere, same] = [Contact::Elsewhere, Contact::SameLines].map(|contact| {
                let group = self.outside(contact, dialect, Reading::Whole, Strategy::Blind);
                let (wrong, all) = (group.ended(End::Wrong), group.count());
                (
                    format!("{wrong} of {all} ({:.0} %)", group.share(|sample| sample.outcome.end == End::Wrong)),
                    group.ended(End::OtherOrder),
                )
            });
            let rebased: usize = contacts()
                .map(|contact| self.outside(contact, dialect, Reading::Whole, Strategy::Rebase).ended(End::OtherOrder))
                .sum();
            [dialect.name().to_owned(), elsewhere.0, elsewhere.1.to_string(), same.0, same.1.to_string(), rebased.to_string()]
        });
        table(1, header, rows)
    }

    fn again_table(&self) -> String {
        let middle = |of: &dyn Fn(&Again) -> usize| number(median(self.again.iter().map(|again| of(again) as f64).collect()));
        let row = |what: &str, of: fn(&Again) -> Cost| {
            [what.to_owned(), middle(&|again| of(again).output), middle(&|again| of(again).input)]
        };
        let rows = [
            row("read_file of an unchanged file", |again| again.read),
            row("the same with policy.short_rereads", |again| again.short_read),
            row("write_file of the edited file", |again| again.write),
            row("the same write_file again", |again| again.same_write),
        ];
        table(1, ["call", "output", "input"], rows)
    }

    /// Means and medians of every combination.
    pub(crate) fn to_json(&self) -> Value {
        let quiet = DIALECTS.iter().flat_map(|dialect| READINGS.map(|reading| (*dialect, reading))).map(|(dialect, reading)| {
            let mut row = group_json(&self.quiet(dialect, reading));
            (row["dialect"], row["reads"]) = (json!(dialect.name()), json!(reading_name(reading)));
            row
        });
        let mut outside = Vec::new();
        for contact in contacts() {
            for dialect in DIALECTS {
                for reading in READINGS {
                    for strategy in STRATEGIES {
                        let mut row = group_json(&self.outside(contact, dialect, reading, strategy));
                        (row["dialect"], row["reads"]) = (json!(dialect.name()), json!(reading_name(reading)));
                        (row["outside_change"], row["strategy"]) = (json!(name(contact)), json!(strategy_name(strategy)));
                        outside.push(row);
                    }
                }
            }
        }
        let sources = self.sources.iter().map(|source| {
            json!({
                "name": source.name, "files": source.files, "edits": source.edits, "elsewhere": source.elsewhere,
                "same_lines": source.same_lines, "too_large": source.too_large, "not_made": source.unmade,
            })
        });
        json!({
            "output_price": OUTPUT_PRICE, "sources": sources.collect::<Vec<_>>(), "quiet": quiet.collect::<Vec<_>>(), "outside": outside,
        })
    }
}

fn group_json(group: &Group<'_>) -> Value {
    json!({
        "edits": group.count(), "wrong": group.ended(End::Wrong), "other_order": group.ended(End::OtherOrder),
        "calls_mean": group.mean(|sample| calls(sample) as f64),
        "output_mean": group.mean(|sample| both(sample, |cost| cost.output)),
        "input_mean": group.mean(|sample| both(sample, |cost| cost.input)),
        "cost_mean": group.mean(Sample::total), "cost_median": group.median(Sample::total),
        "after_read_mean": group.mean(Sample::rest), "after_read_median": group.median(Sample::rest),
        "on_top_mean": group.mean(Sample::extra), "on_top_median": group.median(Sample::extra),
    })
}

/// Of the read and all that follows.
fn both(sample: &Sample, of: impl Fn(&Cost) -> usize) -> f64 {
    (of(&sample.outcome.read) + of(&sample.outcome.rest)) as f64
}

fn calls(sample: &Sample) -> usize {
    sample.outcome.read.calls + sample.outcome.rest.calls
}

fn row(name: &str, cells: [String; 4]) -> [String; 5] {
    let [a, b, c, d] = cells;
    [name.to_owned(), a, b, c, d]
}

fn contacts() -> impl Iterator<Item = Contact> {
    [Contact::Elsewhere, Contact::SameLines].into_iter()
}

fn name(contact: Contact) -> &'static str {
    match contact {
        Contact::Elsewhere => "other lines",
        Contact::SameLines => "the same lines",
    }
}

fn reading_name(reading: Reading) -> &'static str {
    match reading {
        Reading::Whole => "the whole file",
        Reading::Needed => "what it needs",
    }
}

fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Reread => "read again",
        Strategy::Repair => "surehand",
        Strategy::Rebase => "surehand, rebase",
        Strategy::Blind => "no gate",
    }
}

fn mean_and_median(group: &Group<'_>, of: fn(&Sample) -> f64) -> String {
    if group.count() == 0 { number(f64::NAN) } else { format!("{} ({})", number(group.mean(of)), number(group.median(of))) }
}

fn number(number: f64) -> String {
    if number.is_nan() { "—".to_owned() } else { format!("{number:.0}") }
}

fn ratio(ours: f64, theirs: f64) -> String {
    let ratio = ours / theirs;
    if ratio.is_finite() { format!("{ratio:.2}") } else { "—".to_owned() }
}
