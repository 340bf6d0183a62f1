import t from 'tap'
import { readTap, type FileRun } from './read-tap.ts'
import { Report } from './report.ts'

/** What tap prints of a run, of which `text` is all but the first line. */
async function read(text: string): Promise<FileRun[]> {
  const runs: FileRun[] = []
  const parser = readTap(run => runs.push(run))
  const ended = new Promise(resolve => parser.on('complete', resolve))
  parser.end(`TAP version 14\n${text}`)
  await ended
  return runs
}

async function report(
  files: readonly string[],
  text: string,
  mostLines = 25
): Promise<{ isPassed: boolean; lines: string[]; leftOut: number }> {
  const lines: string[] = []
  const report = new Report({
    files,
    print: line => lines.push(...line.split('\n')),
    command: 'npm test --',
    mostLines
  })
  for (const run of await read(text)) report.add(run)
  return { isPassed: report.finish(), lines, leftOut: report.leftOut }
}

/** A file with one test that has passed. */
const passing = (name: string, n: number, tookMs = 20) => `# Subtest: .build/test/${name}.test.js
    # Subtest: it holds
        ok 1 - should be equal
        ok 2 - should match pattern
        1..2
    ok 1 - it holds # time=3.1ms
    1..1
    # time=${tookMs}ms
ok ${n} - .build/test/${name}.test.js # time=${tookMs}ms
`

const FAILING = `# Subtest: .build/test/machines/task.test.js
    # 3 of 40, SEED=7; DEEP=1 takes all
    # Subtest: a client's task
        # Subtest: ends
            not ok 1 - should be equal
              ---
              compare: ===
              at:
                fileName: test/machines/task.test.ts
                lineNumber: 3
                columnNumber: 5
              source: |2
                  await t.test('ends', t => {
                    t.equal(1, 2)
                ----^
                  })
              diff: |
                --- expected
                +++ actual
                @@ -1,1 +1,1 @@
                -2
                +1
              ...
            1..1
        not ok 1 - ends # time=2ms
        not ok 2 - boom
          ---
          tapCaught: returnedPromiseRejection
          found: null
          code: ENOENT
          stack: |
            open (test/machines/task.test.ts:8:1)
            read (test/machines/task.test.ts:9:1)
          at:
            fileName: test/machines/task.test.ts
            lineNumber: 8
            columnNumber: 1
          ...
        ok 3 - later # TODO
        1..3
    not ok 1 - a client's task # time=4ms
    1..1
not ok 1 - .build/test/machines/task.test.js # time=30ms
  ---
  exitCode: 1
  ...
`

await t.test('each folder has one line when its last file has ended', async t => {
  const { isPassed, lines } = await report(
    ['test/machines/a.test.ts', 'test/adapters/b.test.ts', 'test/machines/c.test.ts'],
    `1..3\n${passing('machines/a', 1)}${passing('adapters/b', 2)}${passing('machines/c', 3, 1480)}`
  )
  t.ok(isPassed)
  t.strictSame(lines, [
    'test/adapters            1 file, 1 test, 0.0 s',
    'test/machines            2 files, 2 tests, 1.5 s',
    '',
    '3 tests in 3 files: 6 checks passed, 0 failed'
  ])
})

await t.test(
  'a failure shows what was expected and found, the line of the source, and the command that runs it alone',
  async t => {
    const { isPassed, lines } = await report(['test/machines/task.test.ts'], `1..1\n${FAILING}`)
    t.notOk(isPassed)
    t.strictSame(lines, [
      'test/machines               1 file, 2 tests, 0.0 s, 2 FAILED',
      '',
      "FAILED test/machines/task.test.ts > a client's task > ends > should be equal",
      '  expected: 2',
      '  found:    1',
      '  test/machines/task.test.ts:3: t.equal(1, 2)',
      "  alone: SEED=7 npm test -- test/machines/task.test.ts --grep='a client.s task'",
      '',
      "FAILED test/machines/task.test.ts > a client's task > boom",
      '  code: ENOENT',
      '  test/machines/task.test.ts:8:',
      '  open (test/machines/task.test.ts:8:1)',
      '  read (test/machines/task.test.ts:9:1)',
      "  alone: SEED=7 npm test -- test/machines/task.test.ts --grep='a client.s task'",
      '',
      '2 tests in 1 file: 1 checks passed, 2 failed'
    ])
  }
)

await t.test('a longer difference is shown whole', async t => {
  const diff = '            -2\n            +1\n'
  const { lines } = await report(
    ['test/machines/task.test.ts'],
    `1..1\n${FAILING.replace(diff.replaceAll(/^ {12}/gm, '                '), '                 a\n                -2\n                +1\n                +3\n')}`
  )
  t.strictSame(lines.slice(3, 8), ['  expected (-) and found (+):', '   a', '  -2', '  +1', '  +3'])
})

await t.test(
  'a process that ends without a failed test is a failure of its file, and a file that never ended is one too',
  async t => {
    const { isPassed, lines } = await report(
      ['test/a.test.ts', 'test/b.test.ts'],
      `1..1\n${passing('a', 1).replace('\nok 1 - .build/test/a.test.js # time=20ms', '\nnot ok 1 - .build/test/a.test.js # time=20ms\n  ---\n  exitCode: 7\n  signal: null\n  ...')}`
    )
    t.notOk(isPassed)
    t.strictSame(lines, [
      '',
      'FAILED test/a.test.ts',
      '  exitCode: 7',
      '  alone: npm test -- test/a.test.ts',
      '',
      'Never ended: test/b.test.ts',
      '',
      '1 test in 1 file: 2 checks passed, 2 failed'
    ])
  }
)

await t.test('what was left out is said by its reason, and not what was chosen', async t => {
  const text = `1..4
# Subtest: .build/test/a.test.js
    ok 1 - in a browser # SKIP no Chromium
    ok 2 - unwanted # SKIP filter: /x/
    # Subtest: others
        ok 1 - drawn # SKIP no Chromium
        ok 2 - with a \\# # SKIP why \\# not
        1..2
    ok 3 - others # time=6000ms
    1..3
ok 1 - .build/test/a.test.js # time=6001ms
# Subtest: .build/test/b.test.js
    1..0 # no PostgreSQL: apt install postgresql
ok 2 - .build/test/b.test.js # SKIP no PostgreSQL: apt install postgresql
# Subtest: .build/test/c.test.js
    1..0 # only in npm run test:deep
ok 3 - .build/test/c.test.js # SKIP only in npm run test:deep
${passing('d', 4, 7000)}`
  const { isPassed, lines, leftOut } = await report(
    ['a', 'b', 'c', 'd'].map(name => `test/${name}.test.ts`),
    text,
    0
  )
  t.ok(isPassed)
  t.equal(leftOut, 4)
  t.strictSame(lines, [
    'test            4 files, 2 tests, 13.0 s, 4 left out',
    '',
    'Over five seconds, or with something left out:',
    'test/d.test.ts  1 test, 7.0 s',
    'test/a.test.ts  1 test, 6.0 s, 3 left out',
    'test/b.test.ts  0 tests, 0.0 s, 1 left out',
    '',
    'Left out:',
    '  no Chromium: a (2)',
    '  why # not: a (1)',
    '  no PostgreSQL: apt install postgresql: b (1)',
    '',
    '2 tests in 4 files: 2 checks passed, 0 failed'
  ])
})

await t.test('the lines of files are at most as many as there is room for', async t => {
  const names = Array.from({ length: 9 }, (_, i) => `f${i}`)
  const { lines } = await report(
    names.map(name => `test/${name}.test.ts`),
    `1..9\n${names.map((name, i) => passing(name, i + 1, 6000 + i)).join('')}`,
    7
  )
  t.equal(lines.filter(line => line.startsWith('test/f')).length, 6)
  t.ok(lines.includes('and 3 more files'))
})

await t.test('the files of a group are told apart', async t => {
  const runs = await read(`1..1
# Subtest: .build/groups/test-machines-1.test.js
    # file: test/machines/a.test.ts
    # Subtest: one
        ok 1 - should be equal
        1..1
    ok 1 - one # time=30ms
    # Subtest: two
        ok 1 - should be equal
        1..1
    ok 2 - two # time=12ms
    # file: test/machines/b.test.ts
    not ok 3 - at the root
    # file: test/machines/c.test.ts
    # Subtest: every file of the group has run
        1..0
    ok 4 - every file of the group has run # time=1ms
    1..4
not ok 1 - .build/groups/test-machines-1.test.js # time=900ms
`)
  t.match(runs, [
    { file: 'test/machines/a.test.ts', tests: 2, passed: 2, failed: 0, tookMs: 42 },
    { file: 'test/machines/b.test.ts', tests: 0, passed: 0, failed: 1, failures: [{ names: ['at the root'] }] },
    { file: 'test/machines/c.test.ts', tests: 1, failed: 0 }
  ])
  t.equal(runs.length, 3)
})
