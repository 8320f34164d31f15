//! Who leads: the store's term row decides, this machine takes, renews and believes.
