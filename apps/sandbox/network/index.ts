/** The simulated network in front of the sandbox. */
export { Network, type NetworkState } from "./network";
export { describeProfile, LOOPBACK, mergeProfile, type NetworkProfile, parseProfile } from "./profile";
