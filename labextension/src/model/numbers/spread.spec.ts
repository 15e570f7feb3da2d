import { describe, expect, it } from 'vitest';
import { IWritten, spreadOf } from './spread';

/** Seeded, so that each run has the same noise (mulberry32). */
function randomOf(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = randomOf(42);

function normal(): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function poisson(mean: number): number {
  let count = 0;
  for (let left = Math.exp(-mean), chance = random(), sum = left; chance > sum; sum += left) {
    count += 1;
    left *= mean / count;
  }
  return count;
}

/** What a rank prints. */
const NOISE: Record<string, () => string> = {
  'a normal loss': () => (0.5 + 0.05 * normal()).toFixed(4),
  'normal around 0': () => normal().toFixed(3),
  'normal, rounded to few figures': () => (1 + 0.1 * normal()).toFixed(1),
  'lognormal of deviation 1': () => Math.exp(normal()).toFixed(4),
  'lognormal of deviation 0.5': () => Math.exp(0.5 * normal()).toFixed(4),
  'lognormal of deviation 1.5': () => Math.exp(1.5 * normal()).toExponential(2),
  uniform: () => random().toFixed(4),
  'rare counts': () => String(poisson(0.3)),
  counts: () => String(poisson(4)),
  'large counts': () => String(poisson(100)),
  'rounded lognormal counts': () => String(Math.round(20 * Math.exp(0.5 * normal())))
};
const SIZES = [2, 3, 4, 6, 8, 16, 32, 64];
const LINES = 750;

function writtenBy(numRanks: number, print: (rank: number) => string): IWritten[] {
  return [...Array(numRanks).keys()].map(rank => {
    const text = print(rank);
    return { rank, token: { kind: 'number', text, value: Number(text), unit: '' } };
  });
}

/** How many of the lines have a red number. */
function redOf(lines: number, numRanks: number, print: (rank: number) => string): number {
  let red = 0;
  for (let i = 0; i < lines; i++) {
    red += Number(spreadOf(writtenBy(numRanks, print)).values.some(({ isOdd }) => isOdd));
  }
  return red;
}

describe('red numbers', () => {
  it.each(Object.keys(NOISE))('are in 1 of 1000 lines of noise at most: %s', name => {
    const red = SIZES.map(size => redOf(LINES, size, NOISE[name]));
    expect(red.reduce((sum, some) => sum + some) / (SIZES.length * LINES)).toBeLessThanOrEqual(0.001);
  });

  // With so few values, what is found with certainty must differ less.
  it.each([
    [4, 0.02],
    [5, 0.05],
    [6, 0.08],
    [8, 0.1],
    [16, 0.2],
    [64, 0.2]
  ])('find the one of %i ranks that is ten times the others, which differ by %f', (size, deviation) => {
    const red = redOf(200, size, rank => ((rank === 1 ? 10 : 1) * (1 + deviation * normal())).toFixed(4));
    expect(red).toBeGreaterThanOrEqual(198);
  });

  it('find a rank whose count is ten times the others', () => {
    expect(redOf(200, 8, rank => String((rank === 1 ? 10 : 1) * poisson(100)))).toBeGreaterThanOrEqual(198);
  });

  it('find all ranks of a node', () => {
    const print = (rank: number): string => ((rank < 8 ? 10 : 1) * (1 + 0.05 * normal())).toFixed(4);
    const odd = spreadOf(writtenBy(64, print)).values.filter(({ isOdd }) => isOdd);
    expect(odd.map(({ rank }) => rank)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('find a rank that differs from equal ones, but not by the last figure', () => {
    const redWith = (text: string): number => redOf(1, 8, rank => (rank === 3 ? text : '0.5000'));
    expect([redWith('5.0000'), redWith('0.0500'), redWith('0.5001')]).toEqual([1, 1, 0]);
  });
});

describe('a summary', () => {
  it.each(Object.keys(NOISE))('has no number that no rank has: %s', name => {
    for (const size of SIZES) {
      for (let i = 0; i < 50; i++) {
        const written = writtenBy(size, NOISE[name]);
        const { few, mean, deviation, least, most } = spreadOf(written);
        for (const { rank, text } of [...(few ?? []), least!, most!]) {
          const { value } = written[rank].token;
          expect(Math.abs(Number(text) - value)).toBeLessThanOrEqual(0.05 * Math.abs(value));
        }
        expect(few === null).toBe(size > 3);
        if (mean !== null) {
          expect(Number(deviation)).toBeLessThanOrEqual(0.21 * Math.abs(Number(mean)));
          expect(Number(mean)).toBeGreaterThanOrEqual(Number(least!.text));
          expect(Number(mean)).toBeLessThanOrEqual(Number(most!.text));
        }
      }
    }
  });
});
