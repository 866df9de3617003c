//! The picture: a head of three lines, and one of the views below.

use super::aggregate::{Row, StateFilter, ThreadRow};
use super::keys::{KEYS, Sort, TopView};
use super::{Screen, flame};
use crate::process::Process;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use swipr_formats::model::State;
use swipr_formats::names::printable;

/// Colours of a flame graph's bars, by name: the same function has the same everywhere.
const WARM: [Color; 6] = [
    Color::Rgb(205, 80, 50),
    Color::Rgb(215, 110, 45),
    Color::Rgb(220, 140, 50),
    Color::Rgb(225, 165, 60),
    Color::Rgb(200, 95, 70),
    Color::Rgb(210, 125, 75),
];

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(screen)), head);
    match screen.view {
        TopView::Functions => functions(frame, screen, body),
        TopView::Threads => threads(frame, screen, body),
        TopView::Flame => flame_graph(frame, screen, body),
    }
    frame.render_widget(Paragraph::new(foot_line(screen)), foot);
    if screen.help {
        help(frame);
    }
}

fn head_lines(screen: &Screen) -> Vec<Line<'static>> {
    let aggregate = &screen.aggregate;
    let count =
        |which: fn(&State) -> bool| aggregate.threads.values().filter(|thread| which(&thread.state)).count();
    let running = count(|state| matches!(state, State::Running));
    let runnable = count(|state| matches!(state, State::Runnable));
    let blocked = count(|state| matches!(state, State::Blocked(_)));
    let process = screen.process.as_ref();
    let what = match (&screen.over, screen.paused) {
        // The recording may have been handed over just before.
        (Some(_), _) if process.is_some_and(Process::has_ended) => {
            Span::from("  the process has ended").red().bold()
        }
        (Some(why), _) => Span::from(format!("  {why}")).red().bold(),
        (None, true) => Span::from("  standing still").yellow().bold(),
        (None, false) => match process.and_then(Process::state) {
            Some('T') => Span::from("  the process is stopped").yellow().bold(),
            Some('t') => Span::from("  a debugger holds the process").yellow().bold(),
            _ => Span::from(""),
        },
    };
    let cpu = 100.0 * aggregate.cpu_ns as f64 / aggregate.period_ns.max(1) as f64;
    let losses = match screen.losses {
        Some((lost, late)) => format!("lost {lost}, late ticks {late}"),
        None => "losses not known yet".to_owned(),
    };
    let seconds = aggregate.counted.as_secs_f64();
    let figures = format!("CPU {cpu:.1} %; {} samples in {seconds:.0} s, {losses}", aggregate.samples);
    let states = format!(
        "{} threads: {running} running, {runnable} waiting for a CPU, {blocked} blocked",
        aggregate.threads.len()
    );
    let mode = match (screen.view, screen.waits, shown(screen)) {
        (TopView::Flame, _, StateFilter::Cpu) => "flame graph of CPU time",
        (TopView::Flame, _, StateFilter::Waits) => "flame graph of waiting for a CPU",
        (TopView::Flame, _, StateFilter::Blocked) => "flame graph of blocked time",
        (_, true, _) => "i hides what waits",
        (_, false, _) => "what waits is hidden",
    };
    vec![
        Line::from(vec![
            Span::from("swipr top  ").bold(),
            Span::from(screen.title.clone()).bold().green(),
            what,
        ]),
        Line::from(figures),
        Line::from(format!("{states}; {mode}")),
    ]
}

fn foot_line(screen: &Screen) -> Line<'static> {
    if screen.typing || !screen.filter.is_empty() {
        return Line::from(format!("/{}", screen.filter)).yellow();
    }
    Line::from("Tab view  1-6 sort  i hide waits  l lines  / filter  p pause  r reset  ? help  q quit")
        .dark_gray()
}

/// Rows that fit, from where it was scrolled to; that is held within what there is.
fn visible<T>(rows: Vec<T>, scroll: &mut usize, height: u16) -> Vec<T> {
    *scroll = (*scroll).min(rows.len().saturating_sub(usize::from(height).max(1)));
    rows.into_iter().skip(*scroll).take(height.into()).collect()
}

/// The time that is asked for by sorting.
fn shown(screen: &Screen) -> StateFilter {
    match screen.sort {
        Sort::Own | Sort::Total | Sort::OwnTime | Sort::TotalTime => StateFilter::Cpu,
        Sort::Waits => StateFilter::Waits,
        Sort::Blocked => StateFilter::Blocked,
    }
}

/// Rows of functions, in their order.
fn function_rows(screen: &Screen) -> Vec<&Row> {
    let table = if screen.lines { &screen.aggregate.lines } else { &screen.aggregate.functions };
    let filter = &screen.filter;
    let wanted = |row: &&Row| filter.is_empty() || row.name.contains(filter) || row.place.contains(filter);
    let counts = |row: &&Row| match screen.waits {
        true => row.total.ns(StateFilter::Cpu) > 0 || row.own.is_some(),
        false => row.total.ns(StateFilter::Cpu) > 0,
    };
    let mut rows: Vec<&Row> = table.rows.iter().filter(wanted).filter(counts).collect();
    let cpu = |time: super::aggregate::Time| time.ns(StateFilter::Cpu);
    let key = |row: &Row| match screen.sort {
        Sort::Own => (cpu(row.own_now), cpu(row.own)),
        Sort::Total => (cpu(row.total_now), cpu(row.total)),
        Sort::OwnTime => (cpu(row.own), cpu(row.own_now)),
        Sort::TotalTime => (cpu(row.total), cpu(row.total_now)),
        Sort::Waits => (row.own_now.ns(StateFilter::Waits), row.own.ns(StateFilter::Waits)),
        Sort::Blocked => (row.own_now.ns(StateFilter::Blocked), row.own.ns(StateFilter::Blocked)),
    };
    rows.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn functions(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let period_ns = screen.aggregate.period_ns.max(1);
    let [title, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let column =
        |name: &str, sort: Sort| if screen.sort == sort { format!("{name}↓") } else { name.to_owned() };
    let mut heads = format!(
        "{:>7} {:>7} {:>9} {:>10}",
        column("%CPU", Sort::Own),
        column("%Total", Sort::Total),
        column("CPUTime", Sort::OwnTime),
        column("TotalTime", Sort::TotalTime),
    );
    if screen.waits {
        let (waits, blocked) = (column("%Wait", Sort::Waits), column("%Block", Sort::Blocked));
        heads.push_str(&format!(" {waits:>7} {blocked:>7}"));
    }
    let place = if screen.lines { "file:line" } else { "file" };
    let heads = format!("{heads}  Function ({place})");
    frame.render_widget(Paragraph::new(bar_line(&heads, title.width)), title);
    let line = |row: &Row| {
        let percent = |ns: u64| 100.0 * ns as f64 / period_ns as f64;
        let own = percent(row.own_now.ns(StateFilter::Cpu));
        let figures = format!(
            "{own:>6.1}% {:>6.1}% {:>8.2}s {:>9.2}s",
            percent(row.total_now.ns(StateFilter::Cpu)),
            row.own.ns(StateFilter::Cpu) as f64 / 1e9,
            row.total.ns(StateFilter::Cpu) as f64 / 1e9,
        );
        let waits = match screen.waits {
            true => {
                let [waits, blocked] =
                    [StateFilter::Waits, StateFilter::Blocked].map(|doing| percent(row.own_now.ns(doing)));
                format!(" {waits:>6.1}% {blocked:>6.1}%")
            }
            false => String::new(),
        };
        let style = if own >= 50.0 {
            Style::new().red()
        } else if own >= 10.0 {
            Style::new().yellow()
        } else {
            Style::new()
        };
        let place = if row.place.is_empty() { String::new() } else { format!(" ({})", row.place) };
        Line::from(vec![
            Span::styled(figures, style),
            Span::from(waits).dark_gray(),
            Span::from("  "),
            Span::from(row.name.clone()).bold(),
            Span::from(place).dark_gray(),
        ])
    };
    let lines: Vec<Line<'_>> = function_rows(screen).into_iter().map(line).collect();
    let lines = visible(lines, &mut screen.scroll, body.height);
    frame.render_widget(Paragraph::new(lines), body);
}

fn threads(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let period_ns = screen.aggregate.period_ns.max(1);
    let filter = &screen.filter;
    let wanted = |thread: &&ThreadRow| {
        let is_found = filter.is_empty() || thread.name.contains(filter) || thread.doing.contains(filter);
        is_found && (screen.waits || thread.now.ns(StateFilter::Cpu) > 0)
    };
    let mut rows: Vec<&ThreadRow> = screen.aggregate.threads.values().filter(wanted).collect();
    let key = |thread: &ThreadRow| match shown(screen) {
        StateFilter::Cpu => {
            [StateFilter::Cpu, StateFilter::Waits, StateFilter::Blocked].map(|doing| thread.now.ns(doing))
        }
        doing => [thread.now.ns(doing), 0, 0],
    };
    rows.sort_by_key(|thread| (std::cmp::Reverse(key(thread)), thread.tid));
    let [title, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let waits = if screen.waits { format!(" {:>7} {:>8}", "%WAIT", "%BLOCKED") } else { String::new() };
    let heads = format!("{:>8} {:<16} {:>7}{waits}  {:<18} Function", "TID", "NAME", "%CPU", "STATE");
    frame.render_widget(Paragraph::new(bar_line(&heads, title.width)), title);
    let line = |thread: &ThreadRow| {
        let [cpu, wait, blocked] = [StateFilter::Cpu, StateFilter::Waits, StateFilter::Blocked]
            .map(|doing| 100.0 * thread.now.ns(doing) as f64 / period_ns as f64);
        let waits = if screen.waits { format!(" {wait:>6.1}% {blocked:>7.1}%") } else { String::new() };
        let (state, style) = match thread.state {
            State::Running => ("running".to_owned(), Style::new().green()),
            State::Runnable => ("waiting for a CPU".to_owned(), Style::new().yellow()),
            State::Blocked(call) => {
                let name = call.and_then(swipr_formats::syscalls::name);
                (
                    name.map_or_else(|| "blocked".to_owned(), |name| format!("in {name}")),
                    Style::new().dark_gray(),
                )
            }
        };
        let name = printable(&thread.name);
        Line::from(vec![
            Span::from(format!("{:>8} {name:<16} {cpu:>6.1}%{waits}  ", thread.tid)),
            Span::styled(format!("{state:<18} "), style),
            Span::from(thread.doing.clone()).bold(),
        ])
    };
    let lines: Vec<Line<'_>> = rows.into_iter().map(line).collect();
    let lines = visible(lines, &mut screen.scroll, body.height);
    frame.render_widget(Paragraph::new(lines), body);
}

fn flame_graph(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let tree = flame::tree(&screen.aggregate, shown(screen));
    let lines = visible(flame::lines(&tree, area.width), &mut screen.scroll, area.height);
    for (row, bars) in (area.y..area.y.saturating_add(area.height)).zip(lines) {
        for bar in bars {
            let is_found = !screen.filter.is_empty() && bar.name.contains(&screen.filter);
            let hash =
                bar.name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            let warm = WARM.get(hash % WARM.len()).copied().unwrap_or(Color::Red);
            let colour = if is_found { Color::Magenta } else { warm };
            // A column of its own between neighbours, where there is room.
            let width = usize::from(if bar.width > 2 { bar.width - 1 } else { bar.width });
            let text: String = bar.name.chars().take(width).collect();
            let place = Rect { x: area.x + bar.column, y: row, width: width as u16, height: 1 };
            let style = Style::new().fg(Color::Black).bg(colour);
            frame.render_widget(
                Paragraph::new(format!("{text:<width$}")).style(style),
                place.intersection(area),
            );
        }
    }
}

fn bar_line(text: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    Line::from(format!("{text:<width$}")).style(Style::new().fg(Color::Black).bg(Color::Green))
}

fn help(frame: &mut Frame<'_>) {
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(keys, what)| Line::from(vec![Span::from(format!(" {keys:<26}")).bold(), Span::from(*what)]))
        .collect();
    let (height, width) = (lines.len() as u16 + 2, 98);
    let area = frame.area();
    let place = Rect {
        x: area.width.saturating_sub(width) / 2,
        y: area.height.saturating_sub(height) / 2,
        width: width.min(area.width),
        height: height.min(area.height),
    };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Keys ")), place);
}
