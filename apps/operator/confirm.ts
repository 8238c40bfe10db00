/** Asks on the terminal before a command changes something that cannot be undone. False without a terminal. */
export async function confirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  const { createInterface } = await import("node:readline/promises");
  const asker = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asker.question(`${question} [y/N] `)).trim());
  } finally {
    asker.close();
  }
}
