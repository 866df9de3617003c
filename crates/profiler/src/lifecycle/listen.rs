//! The agent's sockets and its server.

use super::LifeError;
use super::instance::{Instance, Live};
use crate::agent::{Agent, SharedAgent};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use swipr_os::{log, process};
use swipr_server::listen::{Address, Directories, Identity, ListenError, Listener, Place, Reach};
use swipr_server::{EventLoop, Limits, Server, Settings};

/// Listens at all places, and makes the agent.
pub fn listen(instance: &Instance, identity: &Identity) -> Result<(Live, EventLoop), LifeError> {
    let config = &instance.config;
    let directories = Directories::system(config.runtime_directory.clone());
    let (mut listeners, mut not_listening, mut no_default) = (vec![], vec![], None);
    let open = |place| Listener::open(place, identity, &directories, Reach::of(&config.allowed_uids));
    for place in &config.places {
        let opened = match open(place) {
            Err(ListenError::InUse(_)) if listeners.is_empty() && config.main_is_inherited => {
                open(&Place::Default)
            }
            opened => opened,
        };
        match opened {
            Ok(listener) => listeners.push(listener),
            // Clients know another one.
            Err(error) if *place == Place::Default && config.places.len() > 1 => {
                no_default = Some(error.to_string());
            }
            // The first place is the one that clients know.
            Err(error) if listeners.is_empty() => {
                let first = no_default.map_or(String::new(), |first| format!("{first}; "));
                return Err(LifeError::Listen(format!("{first}{error}")));
            }
            Err(error) => not_listening.push(error.to_string()),
        }
    }
    log_not_listening(&not_listening, instance);
    no_default.iter().for_each(|reason| config.log.line(reason));
    not_listening.extend(no_default);
    let addresses: Vec<&Address> = listeners.iter().map(Listener::address).collect();
    let address = match addresses.first() {
        Some(&address) => address.clone(),
        None => return Err(LifeError::Listen("there is no place to listen".into())),
    };
    let files = listeners.iter().filter_map(|listener| listener.file().cloned()).collect();
    let agent = Arc::new(Agent::new(config));
    agent.set_addresses(&addresses, not_listening);
    let recorder = Arc::new(SharedAgent(agent.clone()));
    let settings = Settings {
        token: config.token.clone(),
        allowed_uids: config.allowed_uids.clone(),
        shares_descriptors: !instance.has_own_table.load(Relaxed),
        log: config.log,
        limits: Limits::default(),
    };
    let (server, event_loop) = Server::new(listeners, recorder, settings)
        .map_err(|error| LifeError::Failed(format!("cannot make the server: {error}")))?;
    Ok((Live { agent, server, address, files, whole: OnceLock::new(), ended_by: 0.into() }, event_loop))
}

/// A place besides the main one is taken: reports that on stderr. Children of a profiled process,
/// which has the place itself, only log it.
fn log_not_listening(reasons: &[String], instance: &Instance) {
    let is_child = !reasons.is_empty() && (instance.is_forked() || process::has_profiled_parent());
    for reason in reasons {
        match is_child {
            true => instance.config.log.line(reason),
            false => log::always(format_args!("SWIPR_LISTEN: {reason}; it is profiled all the same")),
        }
    }
}
