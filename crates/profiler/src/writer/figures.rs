//! A recording's figures beyond its counters: why its stacks were cut, and what the agent spent
//! while it ran.

use crate::agent_threads;
use crate::counters::AgentCounters;
use crate::histogram::Counts;
use swipr_formats::model::{Cost, Summary};
use swipr_unwind::walk::Stop;

/// The agent's counters when the recording began, and how the recording's walks ended.
#[derive(Debug)]
pub struct Figures {
    held: Counts,
    sweep: Counts,
    agent_cpu_ns: u64,
    stops: [u64; Stop::ALL.len()],
}

impl Figures {
    /// The recording begins.
    pub fn new(agent: &AgentCounters) -> Figures {
        Figures {
            held: agent.held.counts(),
            sweep: agent.sweep.counts(),
            agent_cpu_ns: agent_threads::cpu_ns(),
            stops: [0; Stop::ALL.len()],
        }
    }

    /// Counts a stack that was cut for this reason, at so many ticks.
    pub fn stopped(&mut self, stop: Stop, ticks: u32) {
        if let Some(count) = self.stops.get_mut(stop as usize) {
            *count += u64::from(ticks);
        }
    }

    /// Adds the figures to the summary, at the recording's end.
    pub fn complete(&self, summary: &mut Summary, agent: &AgentCounters) {
        let held = agent.held.counts().since(&self.held).figures();
        let sweep = agent.sweep.counts().since(&self.sweep).figures();
        summary.cost = Some(Cost {
            held_p50_ns: held.p50_ns,
            held_p99_ns: held.p99_ns,
            sweep_p50_ns: sweep.p50_ns,
            sweep_p99_ns: sweep.p99_ns,
            agent_cpu_ns: agent_threads::cpu_ns().saturating_sub(self.agent_cpu_ns),
        });
        let stops = Stop::ALL.iter().zip(self.stops);
        let cut = stops.filter(|&(&stop, count)| stop != Stop::Root && count > 0);
        summary.truncated_by = cut.map(|(stop, count)| (stop.text().into(), count)).collect();
    }
}
