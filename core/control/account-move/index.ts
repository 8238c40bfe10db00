/** Moves an account to another control plane. */
export { abortMove } from "./abort-move";
export type { PlaneContext } from "./control-plane";
export { findMovingAccount, moveAccount } from "./move-account";
export { type MovePlan, type MovingAccount, planMove } from "./plan";
