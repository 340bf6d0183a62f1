import type { Figures } from './figures.ts'

/** A race's figures as a Markdown table. */
export function raceTable(unit: string, figures: readonly Figures[]): string {
  return table(
    ['Server', `${unit}s/s`, 'spread', `server CPU µs/${unit}`, '× Express, rate', '× Express, CPU', 'busy: server', 'busy: load'],
    figures.map(({ name, rate, spread, cpuMicros, timesAsFast, timesAsSparing, serverBusy, loadBusy }) => [
      name, whole(rate), percent(spread), short(cpuMicros), times(timesAsFast), times(timesAsSparing), percent(serverBusy), percent(loadBusy)
    ])
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
