/** The error of a connection whose statements a pooler spreads over several connections of the server. */

export const TRANSACTION_POOLED = "TRANSACTION_POOLED";

export class TransactionPooled extends Error {
  readonly code = TRANSACTION_POOLED;

  constructor(remedy = "Connect to the server directly, or to a pooler in session mode") {
    super(
      `A pooler in transaction mode stands in front of the server: locks, settings and notifications of a session do not last there. ${remedy}`,
    );
  }
}
