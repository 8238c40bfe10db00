/** Returns the first `length` UTF-16 units of `text`, or one fewer if that would split a surrogate pair: JSON cannot carry half of one. */
export function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
