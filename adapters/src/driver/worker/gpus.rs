//! Which GPUs are free.

use std::collections::BTreeSet;

/// The GPUs of a worker by index.
#[derive(Debug)]
pub(super) struct Gpus {
    free: BTreeSet<u32>,
    managed: bool,
}

impl Gpus {
    /// This many, all free; none means that this worker hands out none.
    ///
    /// `visible` is what the worker itself may see (`CUDA_VISIBLE_DEVICES`): where it lists enough
    /// indexes, those are handed out, so that several workers can share a machine.
    pub(super) fn new(count: u16, visible: Option<&str>) -> Gpus {
        let listed: Option<BTreeSet<u32>> = visible
            .map(|list| list.split(',').map(|index| index.trim().parse()).collect())
            .and_then(Result::ok);
        let listed = listed.filter(|indexes| indexes.len() >= usize::from(count));
        let all = listed.unwrap_or_else(|| (0..u32::from(count)).collect());
        Gpus { free: all.into_iter().take(count.into()).collect(), managed: count > 0 }
    }

    /// Whether tasks see only what they are given.
    pub(super) fn are_managed(&self) -> bool {
        self.managed
    }

    /// The lowest free ones. The agent orders no start beyond what is free.
    pub(super) fn take(&mut self, count: u16) -> Vec<u32> {
        let taken: Vec<u32> = self.free.iter().take(usize::from(count)).copied().collect();
        for gpu in &taken {
            self.free.remove(gpu);
        }
        taken
    }

    /// They are free again.
    pub(super) fn give_back(&mut self, gpus: Vec<u32>) {
        self.free.extend(gpus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_given_to_one_at_a_time_and_comes_back() {
        let mut gpus = Gpus::new(3, None);
        let (one, two) = (gpus.take(2), gpus.take(1));
        assert_eq!((one.as_slice(), two.as_slice()), ([0, 1].as_slice(), [2].as_slice()));
        gpus.give_back(one);
        assert_eq!(gpus.take(1), [0]);
        assert!(gpus.are_managed() && !Gpus::new(0, None).are_managed());
    }

    #[test]
    fn a_worker_that_sees_some_gpus_hands_out_those() {
        assert_eq!(Gpus::new(2, Some("4, 6")).take(2), [4, 6]);
        assert_eq!(Gpus::new(2, Some("GPU-8f4b,GPU-1c2d")).take(2), [0, 1], "names have no index");
        assert_eq!(Gpus::new(2, Some("4")).take(2), [0, 1], "too few");
    }
}
