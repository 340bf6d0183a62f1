import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { type PackageName, TESTED_PACKAGES, type TestedPackage, type TestedVersion } from './tested-packages.ts'

const NODE = process.versions.node

/**
 * The version of an installed package, as taskchart would load it. `undefined` if it is not there, or is unknown, as in
 * a bundle.
 */
export function installedVersion(name: string): string | undefined {
  try {
    // Not by `name/package.json`, which many packages do not export.
    for (
      let folder = dirname(fileURLToPath(import.meta.resolve(name)));
      folder !== dirname(folder);
      folder = dirname(folder)
    ) {
      const file = join(folder, 'package.json')
      const found = existsSync(file)
        ? (JSON.parse(readFileSync(file, 'utf8')) as { name?: string; version?: string })
        : {}
      if (found.name === name) return found.version
    }
  } catch {
    // Not installed.
  }
  return undefined
}

/** The row of the table for a package; `undefined` if there is none. */
export function testedPackage(name: string): TestedPackage | undefined {
  return Object.hasOwn(TESTED_PACKAGES, name) ? TESTED_PACKAGES[name as PackageName] : undefined
}

/** The newest tested version that runs on a Node. */
export function newestFor(name: PackageName, node = NODE): TestedVersion {
  const { tested }: TestedPackage = TESTED_PACKAGES[name]
  // The oldest runs on every Node.
  return tested.findLast(version => satisfies(node, `>=${version.node ?? '0'}`)) as TestedVersion
}

/** A package for `npm install`, in the newest tested major that runs on a Node: `ai@7`. */
export function installable(name: PackageName, node = NODE): string {
  return `${name}@${lineOf(newestFor(name, node).version)}`
}

/** Why a version of a package must not be used on a Node. `undefined`: nothing is known against it. */
export function knownFailure(name: string, version: string, node = NODE): string | undefined {
  const failure = testedPackage(name)?.failures?.find(
    ({ versions, node: nodes }) => satisfies(version, versions) && satisfies(node, nodes)
  )
  return failure && `${name} ${version} does not work on Node ${node}: ${failure.what}`
}

/** That a version of a package is not tested. `undefined` if it is, or if the table does not have the package. */
export function untestedWarning(name: string, version: string): string | undefined {
  const { tested } = testedPackage(name) ?? {}
  const [oldest, newest] = [tested?.[0], tested?.at(-1)]
  if (!tested || !oldest || !newest) return undefined
  const isOld = !satisfies(version, `>=${oldest.version}`)
  const isNew = lineOf(version) !== lineOf(newest.version) && satisfies(version, `>=${newest.version}`)
  return isOld || isNew
    ? `taskchart is tested with ${name} ${linesOf(tested).join(' and ')}, not with ${version}`
    : undefined
}

function linesOf(tested: readonly TestedVersion[]): string[] {
  return [...new Set(tested.map(({ version }) => lineOf(version)))]
}

const noted = new Set<string>()

/**
 * Call this before a package is used first. Throws TypeError if the installed version is known to fail on this Node.
 * Warns of an untested version, once in a process; threads are silent.
 */
export function checkPackages(names: readonly PackageName[], versionOf = installedVersion): void {
  for (const name of names) {
    const version = versionOf(name)
    const failure = version && knownFailure(name, version)
    if (failure) throw new TypeError(`${failure}. Run: npm install ${installable(name)}`)
    if (noted.has(name)) continue
    noted.add(name)
    const warning = version && untestedWarning(name, version)
    if (warning && isMainThread)
      process.emitWarning(`${warning}. If something fails, run: npm install ${installable(name)}`, {
        code: 'TASKCHART_PACKAGE'
      })
  }
}

/** Whether a version satisfies a range of comparators, such as `>=1.3.0 <2`. `*` is any. */
export function satisfies(version: string, range: string): boolean {
  return range.split(' ').every(comparator => {
    const isBelow = weightOf(version) < weightOf(comparator.replace(/^\D+/, ''))
    return comparator.startsWith('<') ? isBelow : !isBelow
  })
}

/** The versions that promise to be compatible with this one: its major, or `0` and its minor. */
export function lineOf(version: string): string {
  return /^(?:0\.\d+|\d+)/.exec(version)?.[0] ?? version
}

/** A version as a number, without its prerelease. */
function weightOf(version: string): number {
  const parts = version.replace(/-.*/, '').split('.').map(Number)
  return [0, 1, 2].reduce((sum, i) => sum * 100_000 + (parts[i] ?? 0), 0)
}
