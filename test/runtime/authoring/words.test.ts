import t from 'tap'
import { z } from 'zod'
import { artifactOf } from '../../../runtime/authoring/checked-words.ts'
import { namedArtifacts } from '../../../runtime/authoring/words.ts'
import { artifact, data, dataOf, file, progress, text, textOf as textOfParts } from '../../../runtime/index.ts'
import { userMessage } from '../../fixtures/runtime/runtime-helpers.ts'

await t.test('part metadata names artifacts in two forms, and anything else names none', async t => {
  const named = (...metadata: (Record<string, unknown> | undefined)[]) =>
    namedArtifacts({ ...userMessage(''), parts: metadata.map(each => ({ text: '', ...(each && { metadata: each }) })) })
  t.strictSame(named({ taskId: 't', artifactId: 'a', extra: 1 }), [{ taskId: 't', artifactId: 'a' }])
  t.strictSame(
    named({
      referenceArtifacts: [
        { taskId: 't', artifactId: 'a' },
        null,
        'x',
        { taskId: 't' },
        { taskId: 1, artifactId: 'a' },
        { taskId: 't', artifactId: 2 }
      ]
    }),
    [{ taskId: 't', artifactId: 'a' }]
  )
  t.strictSame(named({ referenceArtifacts: 'x', taskId: 't', artifactId: 'a' }, undefined, {}), [
    { taskId: 't', artifactId: 'a' }
  ])
  t.strictSame(named({ taskId: 't' }, { artifactId: 'a' }, { referenceArtifacts: [] }), [])
})

await t.test('words', async t => {
  t.strictSame(text('x'), { text: 'x' })
  t.strictSame(data(null), { data: null })
  t.strictSame(file(new Uint8Array([1, 2, 3]).subarray(1)), { raw: 'AgM=' })
  t.strictSame(file(new Uint8Array(), { filename: 'f', mediaType: 'image/png' }), {
    raw: '',
    filename: 'f',
    mediaType: 'image/png'
  })
  t.equal(textOfParts({ parts: [text('a'), data(1), text('b')] }), 'a\nb')
  const promised = Promise.resolve({ parts: [] })
  t.throws(
    () => textOfParts(promised as never),
    new TypeError('textOf takes a message or an artifact, not a promise. Await it: textOf(await …).')
  )
  t.throws(
    () => dataOf(promised as never, z.string()),
    new TypeError('dataOf takes a message or an artifact, not a promise. Await it: dataOf(await …).')
  )
  t.throws(
    () => textOfParts('x' as never),
    new TypeError(
      'textOf takes a message or an artifact, not a string. A task has them in status.message, history and artifacts.'
    )
  )
  t.throws(() => textOfParts({ id: 'a task' } as never), {
    name: 'TypeError',
    message: /^textOf takes a message or an artifact, not an object/
  })
  t.strictSame(progress(), { type: 'progress' })
  t.strictSame(progress(''), { type: 'progress', message: '' })
  t.strictSame(artifact('x', { append: true, lastChunk: false }), {
    type: 'artifact',
    artifact: 'x',
    append: true,
    lastChunk: false
  })
})

await t.test("an agent's messages have the JSON limits of clients, and toJSON results are JSON", async t => {
  const nothing = { toJSON: () => {} } as unknown as Record<string, never>
  const text = { toJSON: () => 'x' } as unknown as Record<string, never>
  const nested = (depth: number): [] => JSON.parse('['.repeat(depth) + ']'.repeat(depth))
  const cycle: Record<string, unknown> = {}
  cycle['self'] = [cycle]
  const crowd = (members: number) => Object.fromEntries(Array.from({ length: members }, (_, i) => [`k${i}`, i]))
  const rows: [unknown, RegExp][] = [
    [{ data: nothing }, /artifact\.parts\[0\]\.data is undefined, which JSON does not keep/],
    [{ text: 'x', metadata: nothing }, /artifact\.parts\[0\]\.metadata is undefined, which JSON/],
    [{ text: 'x', metadata: text }, /artifact\.parts\[0\]\.metadata must be an object, also after its toJSON/],
    [{ parts: [{ text: 'x' }], metadata: nothing }, /artifact\.metadata is undefined, which JSON/],
    [{ data: nested(65) }, /artifact\.parts\[0\]\.data\S+ must not be nested more than 64 deep/],
    [{ data: nested(5000) }, /artifact\.parts\[0\]\.data\S+ must not be nested more than 64 deep/],
    [{ data: cycle }, /artifact\.parts\[0\]\.data\.self\[0\] is an object that contains itself/],
    [{ data: crowd(10_001) }, /artifact\.parts\[0\]\.data must not bring the total to more than 10000 members/],
    [
      {
        data: {
          get name() {
            throw new Error('closed')
          }
        }
      },
      /artifact\.parts\[0\]\.data must be JSON/
    ],
    [{ data: [1n] }, /artifact\.parts\[0\]\.data\[0\] is a BigInt/]
  ]
  for (const [words, message] of rows) t.throws(() => artifactOf(words), { code: 'InvalidAgentResponse', message })
  const document = { cycle, toJSON: () => ({ id: 1 }) }
  const good = {
    parts: [
      { data: { at: new Date(0), document, deep: nested(63), long: 'x'.repeat(600_000) }, metadata: crowd(10_000) }
    ]
  }
  t.strictSame(artifactOf(good), JSON.parse(JSON.stringify(good)))
})
