import t from 'tap'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { deferred } from '../../../fixtures/runtime/runtime-helpers.ts'

await t.test(
  'taskchart serve --inspect serves the page of the inspector, with a token where callers need a key',
  async t => {
    const cwd = t.testdir({
      'hello.js': "export default { card: { name: 'Hello' }, work: () => ({ artifact: 'hello' }) }"
    })
    const pageWith = async (...options: readonly string[]) => {
      const [stop, announced] = [new AbortController(), deferred<string>()]
      const ended = runCommand(['serve', 'hello.js', '--port', '0', '--json', ...options], {
        printed: announced.resolve,
        signal: stop.signal,
        cwd
      })
      t.teardown(() => (stop.abort(), ended))
      return (JSON.parse(await announced.promise) as { page: string }).page
    }
    const story = async (page: string) => (await fetch(new URL('/inspector/story?task=none', page))).status
    const [plain, open, keyed] = [
      await pageWith(),
      await pageWith('--inspect'),
      await pageWith('--inspect', '--api-key', 'secret-of-16-chars')
    ]
    t.match(
      [plain, open, keyed],
      [/^http:\/\/127\.0\.0\.1:\d+\/$/, /^http:\/\/127\.0\.0\.1:\d+\/$/, /^http:\/\/127\.0\.0\.1:\d+\/\?token=\S+$/]
    )
    t.not(await story(plain), await story(open))
    t.equal(await story(keyed), 401)
  }
)
