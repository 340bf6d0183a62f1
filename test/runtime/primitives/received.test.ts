import { EventEmitter } from 'node:events'
import t from 'tap'
import { onMessageEvent, onReceived } from '../../../runtime/primitives/event-loop.ts'

const throwing = (data: unknown) => {
  throw new Error(String(data))
}

await t.test(
  'an error of a listener ends its socket or stream, or goes to the one who wants it, and never out of the listener',
  t => {
    const seen: unknown[] = []
    const sources = [
      { terminate: () => seen.push('terminated') },
      { destroy: (error: Error) => seen.push(error.message) },
      {}
    ]
    for (const members of sources) {
      const source = Object.assign(new EventEmitter(), members)
      onReceived(source, 'data', throwing)
      source.emit('data', 'bad')
    }
    const source = new EventEmitter()
    onReceived(source, 'message', throwing, error => seen.push((error as Error).message))
    source.emit('message', 'worse')
    const target = new EventTarget()
    onMessageEvent(
      target as never,
      ({ data }) => throwing(data),
      error => seen.push((error as Error).message)
    )
    target.dispatchEvent(Object.assign(new Event('message'), { data: 'of the web' }))
    t.strictSame(seen, ['terminated', 'bad', 'worse', 'of the web'])
    t.end()
  }
)

await t.test('what arrives is passed on, and the listener has the given members', t => {
  const source = new EventEmitter()
  const seen: unknown[] = []
  onReceived(source, 'message', (...given: unknown[]) => void seen.push(given), undefined, { listener: 'mark' })
  source.emit('message', 1, 2)
  t.strictSame(seen, [[1, 2]])
  t.same(source.listeners('message'), ['mark'], 'by which Node finds it')
  t.end()
})
