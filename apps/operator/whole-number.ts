/** Arguments and options that are whole numbers. */
import { InvalidArgumentError } from "commander";

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (Number.isInteger(number) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`must be a number from ${least} to ${most}`);
  };
}
