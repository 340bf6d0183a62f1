import { express } from './contenders.ts'
import type { Lane, Race, Round } from './race.ts'

/** The figures of a server's rounds. All but `spread` and `cpuP10` are medians. */
export interface Figures {
  readonly name: string
  /** Units a second. */
  readonly rate: number
  /** How far the rounds lie apart: the highest rate less the lowest, as a part of the median. */
  readonly spread: number
  /** CPU time of the server for one unit, in microseconds. */
  readonly cpuMicros: number
  /** The CPU time below which one round of ten lies: what other processes disturb least. */
  readonly cpuP10: number
  /** Bytes that the server allocated for one unit. */
  readonly allocated: number
  /**
   * How often as fast as the baseline of the race, and how often as sparing of the server's CPU, in the same rounds.
   */
  readonly timesAsFast: number
  readonly timesAsSparing: number
  /**
   * Parts of the time in which the server, and the load generator, were busy. Above 1 where garbage is collected
   * beside.
   */
  readonly serverBusy: number
  readonly loadBusy: number
  /** How long one of the times took that the race was run, in milliseconds. */
  readonly wallMs: number
}

/** What others are compared with, unless a race says otherwise. */
export const OFFICIAL = { contender: express, name: 'Express' }

/** The figures of a race, a line for each server. */
export function figuresOf(
  lanes: readonly Lane[],
  { times, baseline: { contender: compared } = OFFICIAL }: Pick<Race, 'times' | 'baseline'>
): Figures[] {
  const baseline = lanes.find(({ contender }) => contender === compared)?.rounds ?? []
  return lanes.map(({ contender, rounds }) => {
    const compare = (of: (round: Round) => number) => median(rounds.map((round, n) => ratio(round, baseline[n], of)))
    return {
      name: contender.name,
      ...summary(rounds),
      wallMs: median(rounds.map(({ wallMs }) => wallMs / times)),
      timesAsFast: compare(rateOf),
      timesAsSparing: 1 / compare(cpuMicrosOf)
    }
  })
}

/** The middle one of the values, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2
}

function summary(rounds: readonly Round[]) {
  const of = (read: (round: Round) => number) => median(rounds.map(read))
  const rates = rounds.map(rateOf)
  const rate = median(rates)
  return {
    rate,
    spread: (Math.max(...rates) - Math.min(...rates)) / rate,
    cpuMicros: of(cpuMicrosOf),
    cpuP10: rounds.map(cpuMicrosOf).toSorted((a, b) => a - b)[Math.floor(rounds.length / 10)] ?? NaN,
    allocated: of(({ allocated, units }) => allocated / units),
    serverBusy: of(({ serverCpuMs, wallMs }) => serverCpuMs / wallMs),
    loadBusy: of(({ loadCpuMs, wallMs }) => loadCpuMs / wallMs)
  }
}

function rateOf({ units, wallMs }: Round): number {
  return (1000 * units) / wallMs
}

function cpuMicrosOf({ serverCpuMs, units }: Round): number {
  return (1000 * serverCpuMs) / units
}

function ratio(round: Round, other: Round | undefined, of: (round: Round) => number): number {
  return other ? of(round) / of(other) : NaN
}
