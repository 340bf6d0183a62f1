import { OFFICIAL, type Figures } from './figures.ts'
import type { Race } from './race.ts'

/** From this part of the time on the load generator may be what limits the rate. */
const BUSY = 0.9

/** A race's figures as a Markdown table. A load generator that was the limit, or close to it, stands in bold. */
export function raceTable(
  { unit, isTimed, baseline: { name: compared } = OFFICIAL }: Pick<Race, 'unit' | 'isTimed' | 'baseline'>,
  figures: readonly Figures[]
): string {
  return table(
    [
      'Server',
      ...(isTimed ? ['ms/task'] : []),
      `${unit}s/s`,
      'spread',
      `server CPU µs/${unit}`,
      'p10',
      `kB/${unit}`,
      `× ${compared}, rate`,
      `× ${compared}, CPU`,
      'busy: server',
      'busy: load'
    ],
    figures.map(
      ({
        name,
        wallMs,
        rate,
        spread,
        cpuMicros,
        cpuP10,
        allocated,
        timesAsFast,
        timesAsSparing,
        serverBusy,
        loadBusy
      }) => [
        name,
        ...(isTimed ? [short(wallMs)] : []),
        whole(rate),
        percent(spread),
        short(cpuMicros),
        short(cpuP10),
        short(allocated / 1000),
        times(timesAsFast),
        times(timesAsSparing),
        percent(serverBusy),
        loadBusy >= BUSY ? `**${percent(loadBusy)}**` : percent(loadBusy)
      ]
    )
  )
}

/** A Markdown table; all columns but the first are numbers. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(heads), line(heads.map((_, i) => (i === 0 ? '---' : '--:'))), ...rows.map(line)].join('\n')
}

/** `12,345` */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}

/** Three digits that say something: `123`, `12.3`, `1.23`. */
export function short(value: number): string {
  return value >= 100 ? whole(value) : value.toPrecision(3)
}

/** `12.3×` */
export function times(value: number): string {
  return Number.isNaN(value) ? '–' : `${short(value)}×`
}

/** `12 %` */
export function percent(value: number): string {
  return `${whole(100 * value)} %`
}

/** Bytes as mebibytes: `12.3`. */
export function mebibytes(bytes: number): string {
  return short(bytes / 2 ** 20)
}
