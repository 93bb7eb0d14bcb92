//! Visits every state that can be reached, breadth first, so that what is found wrong is shown with
//! the fewest steps.
//!
//! Written here because `stateright` without its default features still brings a web server, a
//! concurrent map, serde and two random number generators: 47 packages for the 150 lines below. What
//! is left out of it is what is not needed: several threads, a browser, symmetry.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    fmt::{self, Debug, Display},
    hash::{BuildHasherDefault, Hash, Hasher},
};

/// What can be explored.
pub trait Model {
    /// Equal states are visited once.
    type State: Clone + Eq + Hash + Debug;
    /// What leads from one state to the next; written as a sentence.
    type Step: Copy + Display;
    /// What must hold.
    type Property: Copy + PartialEq + Debug;

    /// Where everything begins.
    fn initial(&self) -> Self::State;
    /// All that can happen now.
    fn steps(&self, state: &Self::State, steps: &mut Vec<Self::Step>);
    /// The state after it.
    ///
    /// # Errors
    ///
    /// The property that this step violates.
    fn apply(&self, state: &Self::State, step: Self::Step) -> Result<Self::State, Self::Property>;
    /// What is wrong with a state, however it was reached.
    fn wrong(&self, state: &Self::State) -> Option<Self::Property>;
    /// Whether everything that is to happen in the end has happened.
    fn is_done(&self, state: &Self::State) -> bool;
    /// Whether this step is taken sooner or later when it can be: no fault, and nobody's free will.
    fn is_fair(&self, state: &Self::State, step: Self::Step) -> bool;
    /// Violated where no sequence of fair steps leads to a state that is done.
    fn progress(&self) -> Self::Property;
}

/// What was found.
#[derive(Debug)]
pub struct Report<P> {
    /// How many different states were visited.
    pub states: usize,
    /// How many steps lead from one to another.
    pub steps: usize,
    /// How many steps the farthest state is away.
    pub depth: usize,
    /// Whether there were no more: otherwise the bound was reached first.
    pub complete: bool,
    /// The shortest way to something wrong.
    pub counterexample: Option<Counterexample<P>>,
}

/// A way to something wrong.
#[derive(Debug)]
pub struct Counterexample<P> {
    /// What does not hold.
    pub property: P,
    /// Step by step.
    pub trace: Vec<String>,
    /// The last state in which nothing was wrong yet, or the wrong one itself.
    pub state: String,
}

impl<P: Debug> Display for Counterexample<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} is violated:", self.property)?;
        for (at, step) in self.trace.iter().enumerate() {
            writeln!(f, "{:3}. {step}", at + 1)?;
        }
        Ok(())
    }
}

/// How a state was reached first.
struct Way<S> {
    from: u32,
    step: Option<S>,
    depth: u32,
}

/// All states so far.
struct Visited<'m, M: Model> {
    model: &'m M,
    index: HashMap<M::State, u32, BuildHasherDefault<Mix>>,
    ways: Vec<Way<M::Step>>,
    queue: VecDeque<(u32, M::State)>,
    /// From and to, of fair steps.
    fair: Vec<(u32, u32)>,
    done: Vec<u32>,
    steps: usize,
}

/// Visits everything, or at most so many states.
pub fn explore<M: Model>(model: &M, most: usize) -> Report<M::Property> {
    let mut visited = Visited {
        model,
        index: HashMap::default(),
        ways: Vec::new(),
        queue: VecDeque::new(),
        fair: Vec::new(),
        done: Vec::new(),
        steps: 0,
    };
    let wrong = visited.run(most);
    let complete = wrong.is_none() && visited.queue.is_empty();
    let wrong = if complete { visited.hopeless() } else { wrong };
    Report {
        states: visited.ways.len(),
        steps: visited.steps,
        depth: visited.ways.last().map_or(0, |way| way.depth as usize),
        complete,
        counterexample: wrong.map(|(at, last, property)| visited.trace(at, last, property)),
    }
}

type Wrong<M> = (u32, Option<<M as Model>::Step>, <M as Model>::Property);

impl<M: Model> Visited<'_, M> {
    fn run(&mut self, most: usize) -> Option<Wrong<M>> {
        self.add(self.model.initial(), 0, None);
        let mut steps = Vec::new();
        while self.ways.len() < most
            && let Some((at, state)) = self.queue.pop_front()
        {
            if let Some(property) = self.model.wrong(&state) {
                return Some((at, None, property));
            }
            if self.model.is_done(&state) {
                self.done.push(at);
            }
            steps.clear();
            self.model.steps(&state, &mut steps);
            for &step in &steps {
                self.steps += 1;
                let next = match self.model.apply(&state, step) {
                    Ok(next) => next,
                    Err(property) => return Some((at, Some(step), property)),
                };
                let to = self.add(next, at, Some(step));
                if self.model.is_fair(&state, step) {
                    self.fair.push((at, to));
                }
            }
        }
        None
    }

    fn add(&mut self, state: M::State, from: u32, step: Option<M::Step>) -> u32 {
        let new = u32::try_from(self.ways.len()).unwrap_or(u32::MAX);
        match self.index.entry(state) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                self.queue.push_back((new, vacant.key().clone()));
                vacant.insert(new);
                let before = step.and_then(|_| self.ways.get(from as usize));
                let depth = before.map_or(0, |way| way.depth + 1);
                self.ways.push(Way { from, step, depth });
                new
            }
        }
    }

    /// The first state from which fair steps lead to no state that is done: backwards from those
    /// that are.
    fn hopeless(&self) -> Option<Wrong<M>> {
        let mut before: Vec<(u32, u32)> = self.fair.iter().map(|&(from, to)| (to, from)).collect();
        before.sort_unstable();
        let mut hope = vec![false; self.ways.len()];
        let mut open = self.done.clone();
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut hope[at as usize], true) {
                continue;
            }
            let first = before.partition_point(|(to, _)| *to < at);
            let of_this = before[first..].iter().take_while(|(to, _)| *to == at);
            open.extend(of_this.map(|(_, from)| from));
        }
        let at = hope.iter().position(|hope| !hope)?;
        let at = u32::try_from(at).ok()?;
        Some((at, None, self.model.progress()))
    }

    fn trace(
        &self,
        at: u32,
        last: Option<M::Step>,
        property: M::Property,
    ) -> Counterexample<M::Property> {
        let mut steps: Vec<M::Step> = last.into_iter().collect();
        let mut at = at as usize;
        while let Some(step) = self.ways[at].step {
            steps.push(step);
            at = self.ways[at].from as usize;
        }
        steps.reverse();
        let mut state = self.model.initial();
        for step in &steps {
            match self.model.apply(&state, *step) {
                Ok(next) => state = next,
                Err(_) => break,
            }
        }
        Counterexample {
            property,
            trace: steps.iter().map(ToString::to_string).collect(),
            state: format!("{state:#?}"),
        }
    }
}

/// A fast hash, without protection against who chooses the states: that is us.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n.cast_unsigned() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds one or two, up to ten; with the trap, from nine only luck leads on.
    struct Adding {
        forbidden: u8,
        trap: bool,
    }

    impl Model for Adding {
        type State = u8;
        type Step = u8;
        type Property = &'static str;

        fn initial(&self) -> u8 {
            0
        }

        fn steps(&self, state: &u8, steps: &mut Vec<u8>) {
            steps.extend([1, 2].into_iter().filter(|step| state + step <= 10));
        }

        fn apply(&self, state: &u8, step: u8) -> Result<u8, &'static str> {
            match state + step {
                7 if self.forbidden == 7 => Err("step"),
                next => Ok(next),
            }
        }

        fn wrong(&self, state: &u8) -> Option<&'static str> {
            (*state == self.forbidden).then_some("state")
        }

        fn is_done(&self, state: &u8) -> bool {
            *state == 10
        }

        fn is_fair(&self, state: &u8, _: u8) -> bool {
            !(self.trap && *state == 9)
        }

        fn progress(&self) -> &'static str {
            "progress"
        }
    }

    fn found(forbidden: u8, trap: bool) -> Option<(&'static str, Vec<String>)> {
        let report = explore(&Adding { forbidden, trap }, 100);
        let found = report.counterexample?;
        Some((found.property, found.trace))
    }

    #[test]
    fn everything_is_visited_once() {
        let right = Adding {
            forbidden: 99,
            trap: false,
        };
        let report = explore(&right, 100);
        assert_eq!((report.states, report.steps, report.depth), (11, 19, 5));
        assert!(report.complete && report.counterexample.is_none());
        assert!(!explore(&right, 5).complete);
    }

    #[test]
    fn the_shortest_way_is_shown() {
        let (property, trace) = found(6, false).unwrap();
        assert_eq!(
            (property, trace.as_slice()),
            ("state", ["2"; 3].map(String::from).as_slice())
        );
        let (property, trace) = found(7, false).unwrap();
        assert_eq!((property, trace.len()), ("step", 4));
    }

    #[test]
    fn a_state_that_only_luck_leaves_is_found() {
        let (property, trace) = found(99, true).unwrap();
        assert_eq!((property, trace.len()), ("progress", 5));
    }
}
