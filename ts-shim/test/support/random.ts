/** Seeded random values, so that a failing case can be run again by its seed. */

export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** In [0, 1). mulberry32. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** An integer in [0, below). */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
}

/** Runs a property for many seeds; the failing seed is in the error. */
export function forSeeds(count: number, property: (random: Random, seed: number) => void): void {
  for (let seed = 1; seed <= count; seed++) {
    try {
      property(new Random(seed), seed);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
}
