/** The error of a statement that must fail. */
export interface StatementError {
  code: string;
  message: string;
  detail?: string;
  hint?: string;
  table_name?: string;
  column_name?: string;
}

export function errorOf(statement: PromiseLike<unknown>): Promise<StatementError> {
  return Promise.resolve(statement).then(
    () => {
      throw new Error("the statement has not failed");
    },
    (error: StatementError) => error,
  );
}
