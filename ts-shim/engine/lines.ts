/** Splits a byte stream into lines at byte 0x0A, and at nothing else. */

const NEWLINE = 0x0a;

/** What a splitter reports: a whole line without its newline, or how long a skipped one was. */
export interface LineSink {
  line(text: string): void;
  /** A line went over the limit; it is skipped and reading goes on at the next newline. */
  oversize(bytes: number): void;
}

/**
 * Collects chunks until a newline and emits UTF-8 lines. Empty lines are skipped.
 *
 * Bytes are split before they are decoded: U+2028 is then no line end, and a character that a chunk
 * boundary cuts in two comes out whole.
 */
export class LineSplitter {
  private parts: Buffer[] = [];
  private held = 0;
  private skipped = 0;
  private readonly sink: LineSink;
  private readonly limit: number;

  constructor(sink: LineSink, limit: number) {
    this.sink = sink;
    this.limit = limit;
  }

  /** Takes the next chunk of the stream. */
  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.hold(chunk.subarray(start, end));
      this.finishLine();
      start = end + 1;
    }
    if (start < chunk.length) this.hold(chunk.subarray(start));
  }

  private hold(part: Buffer): void {
    if (this.skipped > 0 || this.held + part.length > this.limit) {
      this.skipped += this.held + part.length;
      this.parts = [];
      this.held = 0;
      return;
    }
    if (part.length > 0) this.parts.push(part);
    this.held += part.length;
  }

  private finishLine(): void {
    const { parts, skipped } = this;
    this.parts = [];
    this.held = 0;
    this.skipped = 0;
    if (skipped > 0) {
      this.sink.oversize(skipped);
      return;
    }
    const only = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    if (only && only.length > 0) this.sink.line(only.toString("utf8"));
  }
}
