/** The simulated network in front of the sandbox. */
export { Network, type NetworkState } from "./network";
export { LOOPBACK, mergeProfile, type NetworkProfile, parseProfile } from "./profile";
