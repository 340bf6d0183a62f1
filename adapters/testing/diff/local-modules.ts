import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, extname, join, relative, resolve, sep } from 'node:path'
import {
  joinedTokens,
  type LocalModules,
  mentionedNames,
  plainSource,
  RESERVED,
  type Token,
  tokensOf
} from '../../../runtime/work-port.ts'

/** A statement at the top of a module. */
interface Statement {
  /** The names that it declares, or whose values it may change. */
  readonly names: ReadonlySet<string>
  readonly mentions: ReadonlySet<string>
  readonly text: string
}

const CODE = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx']

/**
 * Loads a module, and gives its local modules as they were loaded. Their function throws Error if one of them has
 * changed meanwhile, since it is not known which code was loaded then, or if one cannot be read.
 */
export async function loadWithModules<Loaded>(
  path: string,
  load: () => Promise<Loaded>
): Promise<{ readonly loaded: Loaded; readonly localModules: () => LocalModules }> {
  const stamps = new Map<string, string>()
  const read = attempt(() => readLocalModules(path, stamps))
  const loaded = await load()
  const [changed] = Array.from(stamps).find(([file, stamp]) => stampOf(file) !== stamp) ?? []
  const localModules = () => {
    if (changed === undefined) return read()
    throw new Error(`${changed} has changed while it was loaded. Run the command again`)
  }
  return { loaded, localModules }
}

/** Runs a function, and gives one that has its outcome: the value or the error. */
function attempt<Value>(run: () => Value): () => Value {
  try {
    const value = run()
    return () => value
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** The inode, the size and the times of a file: another text once the file has changed. */
function stampOf(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false })
  return found ? [found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ') : ''
}

/**
 * Reads a module and all local modules that it imports, also those that import each other. `stamps` gets the stamp of
 * each file before it is read.
 */
export function readLocalModules(path: string, stamps = new Map<string, string>()): LocalModules {
  const files = new Map<string, SourceFile>()
  const visit = (file: string) => {
    if (files.has(file)) return
    stamps.set(file, stampOf(file))
    const read = readSource(file)
    files.set(file, read)
    for (const specifier of read.local) {
      const found = resolvedFile(resolve(dirname(file), specifier))
      if (found !== undefined) visit(found)
    }
  }
  visit(path)
  const pathOf = (file: string) => relative(dirname(path), file).split(sep).join('/')
  const all = [...files].toSorted(([one], [other]) => (pathOf(one) < pathOf(other) ? -1 : 1))
  const charts = all.filter(([file, { hasChart }]) => file === path || hasChart)
  const statements = charts.flatMap(([, { statements }]) => statements)
  return {
    others: new Map(
      all.flatMap(([file, { text, hasChart }]) => (file === path || hasChart ? [] : [[pathOf(file), text]]))
    ),
    charts: charts.map(([file]) => pathOf(file)),
    chartText: charts.map(([, { text }]) => text).join('\n'),
    readsOf: sources => readStatements(statements, sources),
    packages: [...new Set(all.flatMap(([, { packages }]) => packages))].toSorted()
  }
}

/**
 * The statements that sources read, also through others, without those that have a chart: that is compared by itself.
 * By the names that they declare.
 */
function readStatements(statements: readonly Statement[], sources: readonly string[]): Map<string, string> {
  const names = new Set(sources.flatMap(source => [...mentionedNames(source)]))
  const found = new Set<Statement>()
  let before = -1
  while (before < found.size) {
    before = found.size
    for (const statement of statements) {
      if (found.has(statement) || !overlaps(statement.names, names)) continue
      found.add(statement)
      for (const name of statement.mentions) names.add(name)
    }
  }
  const texts = new Map<string, string>()
  for (const { names, text } of found) {
    const name = [...names]
      .filter(each => !DECLARES.has(each))
      .slice(0, 3)
      .join(', ')
    texts.set(name, `${texts.get(name) ?? ''}${text}\n`)
  }
  return texts
}

function overlaps(names: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  for (const name of names) if (others.has(name)) return true
  return false
}

interface SourceFile {
  readonly text: string
  readonly hasChart: boolean
  readonly statements: readonly Statement[]
  readonly local: readonly string[]
  readonly packages: readonly string[]
}

function readSource(file: string): SourceFile {
  const source = readFileSync(file, 'utf8')
  if (!CODE.includes(extname(file))) return { text: source, hasChart: false, statements: [], local: [], packages: [] }
  const tokens = file.endsWith('x') ? undefined : tokensOf(source)
  const specifiers = tokens
    ? importedIn(tokens)
    : Array.from(source.matchAll(/(['"])([^'"\n]+)\1/g), ([, , name = '']) => name)
  const isLocal = (specifier: string) => /^\.{0,2}\//.test(specifier)
  return {
    text: tokens ? joinedTokens(tokens) : source,
    hasChart: /\bcreateMachine\b/.test(source),
    statements: tokens ? statementsOf(tokens) : [wholeStatement(source)],
    local: [
      ...(tokens ?? []).flatMap(({ kind, text }) => (kind === 'text' ? [text.slice(1, -1)] : [])),
      ...specifiers
    ].filter(isLocal),
    packages: tokens ? specifiers.filter(specifier => !isLocal(specifier) && !specifier.startsWith('node:')) : []
  }
}

/** The specifiers of imports and exports, and of `import(…)` and `require(…)` with a text. */
function importedIn(tokens: readonly Token[]): string[] {
  return tokens.flatMap(({ kind, text }, i) => {
    const before = tokens[i - 1]?.text ?? ''
    const isCall = before === '(' && ['import', 'require'].includes(tokens[i - 2]?.text ?? '')
    return kind === 'text' && (before === 'from' || before === 'import' || isCall) ? [text.slice(1, -1)] : []
  })
}

/** The file of a path as imports write it: also `.js` for `.ts`, without an ending, and a folder with an index. */
function resolvedFile(path: string): string | undefined {
  const typed = path.replace(/\.([cm]?)js(x?)$/, '.$1ts$2')
  const candidates = [
    path,
    typed,
    ...[...CODE, '.json'].flatMap(ending => [`${path}${ending}`, join(path, `index${ending}`)])
  ]
  return candidates.find(candidate => existsSync(candidate) && statSync(candidate).isFile())
}

/** Words that begin a declaration. */
const DECLARES = new Set(['const', 'let', 'var', 'function', 'class', 'interface', 'type', 'enum', 'namespace'])
const BEFORE_DECLARATION = new Set(['export', 'default', 'declare', 'abstract', 'async'])
/** Of the words after which a statement goes on, those that may begin one. */
const STARTS = new Set([...DECLARES, 'export', 'import', 'async', 'declare', 'abstract', 'await', 'new', 'do', 'throw'])
/** Words after which a statement goes on in the next line. */
const GOES_ON = new Set(
  'as in of instanceof new typeof void delete await yield extends implements default export import from async const let var function class else do return case satisfies keyof type interface declare enum namespace abstract readonly throw is'.split(
    ' '
  )
)

/** The statements at the top of a module. Where that is unclear, several are one. */
function statementsOf(tokens: readonly Token[]): Statement[] {
  const statements: Token[][] = []
  let depth = 0
  let last: Token | undefined
  for (const token of tokens) {
    const { kind, text, isOnNewLine } = token
    const isBegun = kind === 'word' && (!GOES_ON.has(text) || STARTS.has(text))
    if (!last || (depth === 0 && (last.text === ';' || (isOnNewLine && isBegun && canEnd(last))))) statements.push([])
    statements.at(-1)?.push(token)
    depth += depthChange(token)
    last = token
  }
  // Charts and agents are compared by themselves.
  return statements
    .filter(all => !all.some(({ text }) => text === 'createMachine' || text === 'defineAgent') || isImport(all))
    .flatMap(all => (isImport(all) ? importsOf(all) : [statementOf(all)]))
}

function isImport([first, second]: readonly Token[]): boolean {
  return first?.text === 'import' && second?.text !== '(' && second?.text !== '.'
}

/** One statement for each name that is imported, so that another name in the same import is no change. */
function importsOf(tokens: readonly Token[]): Statement[] {
  const text = joinedTokens(tokens)
  const [, before = '', inside = '', after = ''] = /^(.*?)\{(.*)\}(.*)$/s.exec(text) ?? [text, text]
  return [before, ...inside.split(',')].map(part => {
    const names = mentionedNames(part)
    return { names, mentions: names, text: `${part.trim()} ${after}` }
  })
}

function canEnd({ kind, text }: Token): boolean {
  if (kind === 'sign') return [')', ']', '}', ';', '++', '--'].includes(text)
  return kind !== 'word' || !GOES_ON.has(text)
}

function statementOf(tokens: readonly Token[]): Statement {
  const text = joinedTokens(tokens)
  const [keyword = '', name = ''] = tokens.flatMap(({ text }) => (BEFORE_DECLARATION.has(text) ? [] : [text]))
  const mentions = mentionedNames(text)
  // A pattern declares several names, and any other statement may change all that it mentions.
  const isPlain = DECLARES.has(keyword) && !['{', '['].includes(name)
  return { names: isPlain ? topNames(tokens) : mentions, mentions, text }
}

function topNames(tokens: readonly Token[]): Set<string> {
  const names = new Set<string>()
  let depth = 0
  for (const token of tokens) {
    const { kind, text } = token
    depth += depthChange(token)
    if (kind === 'word' && depth === 0 && !RESERVED.has(text) && !DECLARES.has(text) && !BEFORE_DECLARATION.has(text))
      names.add(text)
  }
  return names
}

/** How many brackets a token opens, or closes. */
function depthChange({ kind, text }: Token): number {
  if (kind === 'template') return text === '}' ? -1 : text.endsWith('${') ? 1 : 0
  if (kind !== 'sign') return 0
  return '([{'.includes(text) ? 1 : ')]}'.includes(text) ? -1 : 0
}

function wholeStatement(source: string): Statement {
  const names = mentionedNames(source)
  return { names, mentions: names, text: plainSource(source) }
}
