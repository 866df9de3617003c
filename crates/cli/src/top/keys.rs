//! Keys: those of py-spy's top, and those of htop that fit. [`KEYS`] is the list that help shows.

use super::Screen;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopView {
    Functions,
    Threads,
    Flame,
}

impl TopView {
    fn next(self) -> TopView {
        match self {
            TopView::Functions => TopView::Threads,
            TopView::Threads => TopView::Flame,
            TopView::Flame => TopView::Functions,
        }
    }
}

/// What functions are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Own,
    Total,
    OwnTime,
    TotalTime,
    Waits,
    Blocked,
}

/// What a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Go,
    Quit,
    /// The shell comes back, as `fg` brings this one.
    Suspend,
}

/// The keys, and what they do.
pub(super) const KEYS: [(&str, &str); 14] = [
    ("1 2 3 4", "sort by %CPU, %Total, CPUTime, TotalTime"),
    ("5 6", "sort by %Wait, %Block; the flame graph is of that time, too"),
    ("Tab", "functions, threads, flame graph; also F, T, G"),
    ("i", "hide what waits and what is blocked, or show it"),
    ("l", "by line, or by function"),
    ("/  F3  F4", "show names with this text only; Esc ends that"),
    ("arrows PgUp PgDn Home End", "scroll"),
    ("p  Space", "stand still, or go on"),
    ("r", "begin again"),
    ("?  h  F1", "this help"),
    ("q  F10  Ctrl-C", "end"),
    ("Ctrl-Z", "back to the shell; fg continues"),
    ("", "CPU is as in top and htop: 100 % is one CPU all the time"),
    ("", "Wait: ready to run, and no CPU is there. Block: in a system call"),
];

/// A page, for scrolling.
const PAGE: usize = 20;

/// What is sorted by is shown.
fn sort_by_wait(screen: &mut Screen, sort: Sort) {
    (screen.sort, screen.waits) = (sort, true);
}

/// A key was pressed.
pub(super) fn press(screen: &mut Screen, key: KeyEvent) -> Act {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c' | 'd') => return Act::Quit,
            KeyCode::Char('z') => return Act::Suspend,
            _ => {}
        }
    }
    if screen.typing {
        match key.code {
            KeyCode::Enter => screen.typing = false,
            KeyCode::Esc => (screen.typing, screen.filter) = (false, String::new()),
            KeyCode::Backspace => _ = screen.filter.pop(),
            KeyCode::Char(c) => screen.filter.push(c),
            _ => {}
        }
        return Act::Go;
    }
    if screen.help {
        screen.help = false;
        return if key.code == KeyCode::Char('q') { Act::Quit } else { Act::Go };
    }
    let show = |screen: &mut Screen, view| (screen.view, screen.scroll) = (view, 0);
    match key.code {
        KeyCode::Char('q') | KeyCode::F(10) => return Act::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => screen.help = true,
        KeyCode::Char('1' | 'P') => screen.sort = Sort::Own,
        KeyCode::Char('2') => screen.sort = Sort::Total,
        KeyCode::Char('3') => screen.sort = Sort::OwnTime,
        KeyCode::Char('4') => screen.sort = Sort::TotalTime,
        KeyCode::Char('5') => sort_by_wait(screen, Sort::Waits),
        KeyCode::Char('6') => sort_by_wait(screen, Sort::Blocked),
        KeyCode::Char('i' | 'I') => {
            screen.waits = !screen.waits;
            if !screen.waits && matches!(screen.sort, Sort::Waits | Sort::Blocked) {
                screen.sort = Sort::Own;
            }
        }
        KeyCode::Char('l' | 'L') => screen.lines = !screen.lines,
        KeyCode::Char('p' | ' ') => screen.paused = !screen.paused,
        KeyCode::Char('r' | 'R') => screen.aggregate.reset(),
        KeyCode::Char('f' | 'F') => show(screen, TopView::Functions),
        KeyCode::Char('t' | 'T' | 'H') => show(screen, TopView::Threads),
        KeyCode::Char('g' | 'G') => show(screen, TopView::Flame),
        KeyCode::Tab => show(screen, screen.view.next()),
        KeyCode::Char('/' | '\\') | KeyCode::F(3 | 4) => screen.typing = true,
        KeyCode::Esc => screen.filter.clear(),
        KeyCode::Up | KeyCode::Char('k') => screen.scroll = screen.scroll.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => screen.scroll += 1,
        KeyCode::PageUp => screen.scroll = screen.scroll.saturating_sub(PAGE),
        KeyCode::PageDown => screen.scroll += PAGE,
        KeyCode::Home => screen.scroll = 0,
        KeyCode::End => screen.scroll = usize::MAX,
        _ => {}
    }
    Act::Go
}
