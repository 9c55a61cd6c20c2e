/** Splits a byte stream into lines at byte 0x0A, and at nothing else. */

const NEWLINE = 0x0a;

/**
 * Gives a function that takes chunks of a stream; `onLine` gets its UTF-8 lines, but for empty ones.
 *
 * Bytes are split before they are decoded: U+2028 is then no line end, and a character that a chunk
 * boundary cuts in two comes out whole.
 *
 * @param limit longer lines are skipped, without being held in memory
 * @param onTooLong gets the bytes of a skipped line
 */
export function lineSplitter(
  onLine: (text: string) => void,
  limit: number,
  onTooLong: (bytes: number) => void = () => {},
): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let bytes = 0;
  const hold = (part: Buffer) => {
    bytes += part.length;
    if (bytes > limit) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      hold(chunk.subarray(start, end));
      const [whole, length] = [parts, bytes];
      [parts, bytes] = [[], 0];
      start = end + 1;
      if (length > limit) onTooLong(length);
      else if (length > 0) onLine(Buffer.concat(whole, length).toString("utf8"));
    }
    hold(chunk.subarray(start));
  };
}
