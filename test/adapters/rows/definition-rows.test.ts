import t from 'tap'
import { definitionsIn } from '../../../adapters/rows/definition-rows.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { type Commit, NOT_OWNER } from '../../../runtime/store/store.ts'

const YEAR_MS = 365 * 24 * 60 * 60 * 1000

await t.test('a definition is written to a context of this node, once, and again before it expires', async t => {
  const store = memoryStore()
  const commits: Commit[] = []
  const { readDefinition, writeDefinition } = definitionsIn({
    ...store,
    commit: async commit => {
      commits.push(commit)
      if (!commit.key.contextId.endsWith(' 3')) throw NOT_OWNER
      return store.commit(commit)
    }
  })
  await writeDefinition('a', 'text', 0)
  t.strictSame([commits.length, await readDefinition('a')], [4, 'text'])
  await writeDefinition('a', 'text', YEAR_MS)
  t.equal(commits.length, 4)
  await writeDefinition('a', 'text', 2 * YEAR_MS)
  t.strictSame([commits.length, commits.at(-1)?.expected, commits.at(-1)?.sends[0]?.expiresAtMs], [8, 1, 5 * YEAR_MS])
})

await t.test('a node without a shard, or with a broken store, stores no definition', async t => {
  for (const cause of [NOT_OWNER, new Error('broken')]) {
    const commit = async () => {
      throw cause
    }
    await t.rejects(definitionsIn({ ...memoryStore(), commit }).writeDefinition('a', 'text', 0), cause)
  }
})

await t.test('if another process stores it at the same time, that is as good', async t => {
  const { writeDefinition } = definitionsIn({ ...memoryStore(), commit: async () => false })
  await t.resolves(writeDefinition('a', 'text', 0))
})
