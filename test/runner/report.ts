import { dirname } from 'node:path'
import { inspect } from 'node:util'
import type { Failure, FileRun } from './read-tap.ts'

/** How long a file may take before it has a line of its own. */
const LONG_MS = 5000

/** The fields of tap's diagnostics that are shown in another way, or say nothing about what failed. */
const NOT_SHOWN = new Set([
  'at',
  'source',
  'stack',
  'diff',
  'compare',
  'test',
  'stdio',
  'cwd',
  'externalID',
  'command',
  'args',
  'jobId',
  'handles',
  'tapCaught'
])

export interface ReportOptions {
  /** The test files that are run. */
  readonly files: readonly string[]
  readonly print: (line: string) => void
  /** What runs one of them, such as `npm test --`. */
  readonly command: string
  /** How many lines folders and files may have. */
  readonly mostLines: number
}

/**
 * Tells a person of a run: a line for each folder as soon as its last file has ended, and the rest by {@link finish}.
 */
export class Report {
  readonly runs: FileRun[] = []
  readonly print: ReportOptions['print']
  readonly #options: ReportOptions
  readonly #width: number

  constructor(options: ReportOptions) {
    this.#options = options
    this.print = options.print
    this.#width = Math.max(...options.files.map(file => file.length))
  }

  add(run: FileRun): void {
    this.runs.push(run)
    const folder = dirname(run.file)
    const isIn = (file: string) => dirname(file) === folder
    const ended = this.runs.filter(({ file }) => isIn(file))
    if (ended.length === this.#options.files.filter(isIn).length)
      this.#options.print(this.#line(folder, ended, `${counted(ended.length, 'file')}, `))
  }

  /**
   * Prints what took long, what failed whole, what was left out and why, and the totals. Gives whether all have passed.
   */
  finish(): boolean {
    const { files, print } = this.#options
    this.#printFiles()
    for (const run of this.runs) for (const failure of run.failures) this.#printFailure(run, failure)
    const missing = files.filter(file => !this.runs.some(run => run.file === file))
    if (missing.length > 0) print(`\nNever ended: ${missing.join(', ')}`)
    this.#printLeftOut()
    const { length } = this.runs
    const failed = total(this.runs, 'failed') + missing.length
    print(
      `\n${counted(total(this.runs, 'tests'), 'test')} in ${counted(length, 'file')}: ${total(this.runs, 'passed')} checks passed, ${failed} failed`
    )
    return failed === 0
  }

  /** How many tests and files were left out. */
  get leftOut(): number {
    return this.runs.reduce((sum, { leftOut }) => sum + leftOut.length, 0)
  }

  #line(name: string, runs: readonly FileRun[], files = ''): string {
    const failed = total(runs, 'failed')
    const leftOut = runs.flatMap(run => run.leftOut).length
    const signs = [...(failed > 0 ? [`${failed} FAILED`] : []), ...(leftOut > 0 ? [`${leftOut} left out`] : [])]
    return [
      `${name.padEnd(this.#width)}  ${files}${counted(total(runs, 'tests'), 'test')}`,
      `${(total(runs, 'tookMs') / 1000).toFixed(1)} s`,
      ...signs
    ].join(', ')
  }

  #printFiles(): void {
    const { files, print, mostLines } = this.#options
    const shown = this.runs
      .filter(({ tookMs, leftOut }) => tookMs > LONG_MS || leftOut.length > 0)
      .toSorted((a, b) => b.tookMs - a.tookMs)
    const room = Math.max(5, mostLines - new Set(files.map(file => dirname(file))).size)
    if (shown.length > 0) print('\nOver five seconds, or with something left out:')
    for (const run of shown.slice(0, room)) print(this.#line(run.file, [run]))
    if (shown.length > room) print(`and ${counted(shown.length - room, 'more file')}`)
  }

  #printFailure({ file, seeds }: FileRun, { names, diagnostics }: Failure): void {
    const { print, command } = this.#options
    print(`\nFAILED ${[file, ...names].join(' > ')}`)
    for (const line of linesOf(diagnostics)) print(`  ${line}`)
    // A pattern in a shell's quotes.
    const grep = names.length > 1 ? ` --grep='${names[0]?.replaceAll(/[^\w ,:-]/g, '.')}'` : ''
    // A run as a whole fails too, when its time is over.
    if (file.endsWith('.ts'))
      print(`  alone: ${[...seeds].join(' ')}${seeds.size > 0 ? ' ' : ''}${command} ${file}${grep}`)
  }

  /** One line for each reason, with the files. */
  #printLeftOut(): void {
    const { print } = this.#options
    const reasons = [...new Set(this.runs.flatMap(({ leftOut }) => leftOut))]
    if (reasons.length > 0) print('\nLeft out:')
    for (const reason of reasons) {
      const files = this.runs
        .map(({ file, leftOut }) => ({ file, count: leftOut.filter(why => why === reason).length }))
        .filter(({ count }) => count > 0)
      print(
        `  ${reason}: ${files.map(({ file, count }) => `${file.replace(/^test\//, '').replace(/\.test\.ts$/, '')} (${count})`).join(', ')}`
      )
    }
  }
}

/** What was expected and found, and the line of the source; of an error that was thrown, where. */
function linesOf(diagnostics: Failure['diagnostics']): string[] {
  const { diff, at, source, stack, tapCaught } = diagnostics
  const place = at as { readonly fileName?: string; readonly lineNumber?: number } | undefined
  const sourceLines = typeof source === 'string' ? source.split('\n') : []
  const line = sourceLines[sourceLines.findIndex(text => /^-*\^$/.test(text)) - 1]?.trim()
  const others = Object.entries(diagnostics).filter(([name, value]) => !NOT_SHOWN.has(name) && value !== null)
  return [
    ...(typeof diff === 'string' ? comparison(diff) : []),
    ...others.flatMap(([name, value]) =>
      `${name}: ${typeof value === 'string' ? value : inspect(value, { depth: 10 })}`.split('\n')
    ),
    ...(place?.fileName === undefined ? [] : [`${place.fileName}:${place.lineNumber}: ${line ?? ''}`.trimEnd()]),
    ...(typeof stack === 'string' && (tapCaught !== undefined || line === undefined) ? stack.trimEnd().split('\n') : [])
  ]
}

/** A difference as tap prints it, with words for a single line. */
function comparison(diff: string): string[] {
  const lines = diff
    .trimEnd()
    .split('\n')
    .filter(line => !/^(?:--- expected|\+\+\+ actual|@@ .* @@)$/.test(line))
  const [wanted = '', found = ''] = lines
  if (lines.length === 2 && wanted.startsWith('-') && found.startsWith('+'))
    return [`expected: ${wanted.slice(1)}`, `found:    ${found.slice(1)}`]
  return ['expected (-) and found (+):', ...lines]
}

function total(runs: readonly FileRun[], what: 'tests' | 'passed' | 'failed' | 'tookMs'): number {
  return runs.reduce((sum, run) => sum + run[what], 0)
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
