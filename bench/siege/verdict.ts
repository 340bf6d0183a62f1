import { percent, short, table, whole } from '../tables.ts'
import type { Found } from './siege.ts'
import type { Wait } from './observer.ts'
import type { Told } from './tally.ts'

const MIB = 2 ** 20

/** The bounds of a siege. Sizes are MiB. */
export const BOUNDS = {
  /**
   * How much longer the observer may wait than beside an idle server, without the time in which the server waited for a
   * processor.
   */
  waitMs: 250,
  /**
   * The heap, with what lies outside of it for objects on it, at any moment, with the garbage that V8 has not collected
   * yet.
   */
  heap: 1536,
  /** The same right after a garbage collection, ten seconds after the attack. */
  heapAfter: 384,
  /** The write-ahead log. */
  log: 256,
  /** How many times the bytes that were sent the file may have, beside what each request may take. */
  fileTimes: 3,
  fileBase: 64,
  restartMs: 10_000
} as const

/** One sentence for each bound that was exceeded and each wrong answer. */
export function failuresOf(found: Found): string[] {
  const { idle, apart, beside, attacks, peaks, after, restartMs, failures } = found
  const longest = worst(beside)
  const added = servedMs(longest) - servedMs(worst(idle))
  const sent = attacks.reduce((sum, { bytes }) => sum + bytes, 0)
  const fileMiB = BOUNDS.fileBase + (BOUNDS.fileTimes * sent) / MIB
  const over = (what: string, bytes: number, mib: number) =>
    bytes > mib * MIB ? [`${what} came to ${mibs(bytes)} MiB; the bound is ${whole(mib)} MiB`] : []
  return [
    ...failures,
    ...attacks.flatMap(({ attack, defects }) =>
      defects.map(text => `"${attack}" was answered with an internal error: ${text}`)
    ),
    ...(added > BOUNDS.waitMs
      ? [
          `${longest.what} took ${whole(longest.tookMs)} ms, in ${whole(longest.descheduledMs)} ms of which the server waited for a processor. The rest is ${whole(added)} ms longer than beside an idle server; the bound is ${BOUNDS.waitMs} ms. With the attack at another server the longest took ${whole(worst(apart).tookMs)} ms`
        ]
      : []),
    ...over('The heap', peaks.heap, BOUNDS.heap),
    ...over('After the attack the heap', after.heap, BOUNDS.heapAfter),
    ...over('The log', peaks.log, BOUNDS.log),
    ...over('The file', peaks.file, fileMiB),
    ...(restartMs > BOUNDS.restartMs
      ? [`The restart took ${whole(restartMs)} ms; the bound is ${whole(BOUNDS.restartMs)} ms`]
      : [])
  ]
}

/** The longest waits of the observer above the bound, and the attacks under way meanwhile. */
export function blame({ idle, beside, during }: Found): string[] {
  const bound = servedMs(worst(idle)) + BOUNDS.waitMs
  return beside
    .filter(wait => servedMs(wait) > bound)
    .toSorted((a, b) => servedMs(b) - servedMs(a))
    .slice(0, 5)
    .map(
      wait =>
        `${wait.what}: ${whole(wait.tookMs)} ms, ${whole(wait.descheduledMs)} ms of them without a processor, during ${during(wait).join('; ')}`
    )
}

/** The figures as Markdown. */
export function report({ idle, apart, beside, attacks, peaks, after, busy, restartMs, tasks }: Found): string {
  const kinds = [...new Set(idle.map(({ what }) => what))].toSorted()
  const of = (waits: readonly Wait[], what: string) =>
    waits.filter(wait => wait.what === what).map(({ tookMs }) => tookMs)
  const served = (what: string) => Math.max(...beside.filter(wait => wait.what === what).map(servedMs))
  const waits = kinds.map(what => [
    what,
    ...[idle, apart, beside].flatMap(waits => [short(at(0.99, of(waits, what))), short(at(1, of(waits, what)))]),
    short(served(what))
  ])
  const sizes = [
    ['heap', mibs(peaks.heap), mibs(after.heap)],
    ['resident, the most so far', mibs(peaks.rss), mibs(after.rss)],
    ['file', mibs(peaks.file), mibs(after.file)],
    ['log', mibs(peaks.log), mibs(after.log)]
  ]
  return [
    table(
      [
        'The observer waits, ms',
        'idle, p99',
        'longest',
        'attack elsewhere, p99',
        'longest',
        'under attack, p99',
        'longest',
        'longest, without the wait for a processor'
      ],
      waits
    ),
    table(['The server, MiB', 'the most under attack', 'after it'], sizes),
    `The server's event loop was blocked for ${whole(peaks.blockedMs)} ms at the most, and busy ${percent(busy)} of the time. Restarted in ${whole(restartMs)} ms with all ${whole(tasks)} tasks of the observer.`,
    table(
      ['Attack', 'times', 'MiB sent', 'answers'],
      attacks.map(({ attack, times, bytes, codes }) => [attack, whole(times), short(bytes / MIB), answers(codes)])
    )
  ].join('\n\n')
}

/** How often each code was answered. */
export function answers(codes: Told['codes']): string {
  return Object.entries(codes)
    .toSorted(([, a], [, b]) => b - a)
    .map(([code, count]) => `${code}: ${whole(count)}`)
    .join(', ')
}

function worst(waits: readonly Wait[]): Wait {
  return waits.reduce((worst, wait) => (servedMs(wait) > servedMs(worst) ? wait : worst), {
    what: 'nothing',
    sentMs: 0,
    tookMs: 0,
    descheduledMs: 0
  })
}

/** A wait without the time in which the server waited for a processor. */
function servedMs({ tookMs, descheduledMs }: Wait): number {
  return tookMs - descheduledMs
}

function at(part: number, values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(part * values.length) - 1] ?? NaN
}

export function mibs(bytes: number): string {
  return short(bytes / MIB)
}
