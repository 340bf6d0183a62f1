import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { planted, type Fault } from './fault.ts'

/** The compiled tree that this file is part of. */
const COMPILED = fileURLToPath(new URL('../..', import.meta.url))

const TREES = ['machines', 'runtime', 'adapters', 'examples', 'test']
const LINKED = ['node_modules', 'docs', 'README.md']
/** Its files that are not compiled, such as stored databases, are copied too. */
const FIXTURES = 'test/fixtures'
const FAULTY = 'faulty'

interface PackageJson {
  readonly exports: Readonly<Record<string, unknown>>
}

/**
 * A copy of the compiled tree in a folder of its own, in which one fault at a time is planted: the working tree is only
 * read. There the package's own name leads to the copy, so that the examples have the fault as well.
 */
export class FaultStage {
  readonly folder: string
  readonly #exports: PackageJson['exports']

  private constructor(folder: string, exports: PackageJson['exports']) {
    this.folder = folder
    this.#exports = exports
  }

  static async open(): Promise<FaultStage> {
    const folder = await mkdtemp(join(tmpdir(), 'taskchart-faults-'))
    for (const tree of TREES) await cp(join(COMPILED, tree), join(folder, tree), { recursive: true })
    await cp(FIXTURES, join(folder, FIXTURES), { recursive: true, filter: source => !/\.tsx?$/.test(source) })
    for (const name of LINKED) await symlink(resolve(name), join(folder, name))
    const text = (await readFile('package.json', 'utf8')).replaceAll('"./dist/', '"./')
    await writeFile(join(folder, 'package.json'), text)
    const compilerOptions = {
      rootDir: FAULTY,
      outDir: '.',
      noCheck: true,
      noResolve: true,
      types: [],
      declaration: false,
      declarationMap: false,
      sourceMap: false
    }
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: resolve('tsconfig.json'), compilerOptions, include: [FAULTY], exclude: [] })
    )
    return new FaultStage(folder, (JSON.parse(text) as PackageJson).exports)
  }

  /** Where a file of the tree is compiled to. */
  compiled(source: string): string {
    return join(this.folder, source.replace(/\.ts$/, '.js'))
  }

  /** Where a name of the package itself leads, such as `taskchart/client`. */
  own(name: string): string | undefined {
    const [first, ...rest] = name.split('/')
    const target = first === 'taskchart' ? this.#exports[['.', ...rest].join('/')] : undefined
    return target === undefined ? undefined : join(this.folder, (target as { readonly default: string }).default)
  }

  /** Compiles the one file with the fault in it, has `run` look at the tree, and makes it whole again. */
  async with<T>(fault: Fault, run: () => Promise<T>): Promise<T> {
    const { file } = fault
    const faulty = join(this.folder, FAULTY, file)
    const target = this.compiled(file)
    const whole = await readFile(target)
    await mkdir(dirname(faulty), { recursive: true })
    await writeFile(faulty, planted(await readFile(file, 'utf8'), fault))
    try {
      await promisify(execFile)(join(this.folder, 'node_modules', '.bin', 'tsc'), ['-p', '.'], { cwd: this.folder })
      if (whole.equals(await readFile(target)))
        throw new Error(`The fault "${fault.name}" changes nothing in ${target}.`)
      return await run()
    } finally {
      await rm(join(this.folder, FAULTY), { recursive: true })
      await writeFile(target, whole)
    }
  }

  async close(): Promise<void> {
    await rm(this.folder, { recursive: true })
  }
}
