import { once } from 'node:events'
import { createServer, Server as HttpServer } from 'node:http'
import { connect, Server, type AddressInfo, type ListenOptions } from 'node:net'
import t, { type Test } from 'tap'
import { bind, bindError, type ListenAddress } from '../../../adapters/entry/bind.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'

/**
 * Has every system and Node do one thing: sockets beside a server listen on free ports of their own, or find that its
 * port is taken. Gives them.
 */
function socketsBeside(t: Test, found: 'free' | 'taken'): Server[] {
  const beside: Server[] = []
  t.intercept(Server.prototype, 'listen', {
    value(this: Server, place: ListenOptions & { readonly reusePort?: boolean }) {
      if (!(this instanceof HttpServer) && place.reusePort !== undefined) beside.push(this)
      return listen.call(this, {
        ...place,
        reusePort: false,
        ...(beside.includes(this) && found === 'free' && { port: 0 })
      })
    }
  })
  return beside
}
const listen = Reflect.get(Server.prototype, 'listen') as (this: Server, place: ListenOptions) => Server

const portOf = (server: Server) => (server.address() as AddressInfo).port
const answering = () => createServer((request, response) => response.end(request.url))
const answerAt = async (port: number) => (await fetch(`http://127.0.0.1:${port}/here`)).text()

await t.test(
  'the connections of every listening socket are those of the server, and all are closed with it',
  async t => {
    const beside = socketsBeside(t, 'free')
    const server = answering()
    const close = await bind(server, '127.0.0.1', 0, 0)
    const ports = [server, ...beside].map(portOf)
    t.equal(new Set(ports).size, 8)
    for (const port of ports) t.equal(await answerAt(port), '/here')
    const open = ports.map(port => connect(port, '127.0.0.1').on('error', () => {}))
    await Promise.all(open.map(socket => once(socket, 'connect')))
    await Promise.all([close(), ...open.map(socket => once(socket, 'close'))])
    for (const port of ports) await t.rejects(answerAt(port), 'nobody listens')
  }
)

await t.test('a server listens on one socket where a port cannot be shared', async t => {
  const beside = socketsBeside(t, 'taken')
  const server = answering()
  const close = await bind(server, '127.0.0.1', 0, 0)
  t.equal(await answerAt(portOf(server)), '/here')
  t.ok(beside.length > 0 && beside.every(one => !one.listening))
  await close()
})

await t.test('a port of another server is not shared', async t => {
  const [port, other] = [await unusedPort(), answering()]
  const close = await bind(answering(), '127.0.0.1', port, port)
  await t.rejects(bind(other, '127.0.0.1', port, port), {
    code: 'EADDRINUSE',
    message: `Port ${port} is in use on 127.0.0.1. Choose another port, or 0 for a free one.`,
    cause: { code: 'EADDRINUSE' }
  })
  await (
    await bind(other, '127.0.0.1', port, port + 19)
  )()
  t.equal(await answerAt(port), '/here')
  await close()
})

await t.test(
  'an address that cannot be bound is refused with what is wrong and what to do, and with the code of Node',
  t => {
    const place = { host: '192.0.2.1', port: 80 }
    const told = (code: string, at: ListenAddress) =>
      bindError(Object.assign(new Error('no'), { code }), at) as NodeJS.ErrnoException
    const port = 'Choose another port, or 0 for a free one.'
    t.match(told('EADDRINUSE', place), { code: 'EADDRINUSE', message: `Port 80 is in use on 192.0.2.1. ${port}` })
    t.match(told('EADDRINUSE', { ...place, last: 99 }), {
      message: `The ports from 80 to 99 are in use on 192.0.2.1. ${port}`
    })
    t.match(told('EACCES', place), {
      code: 'EACCES',
      message: `This user may not listen on port 80 of 192.0.2.1. ${port}`
    })
    for (const code of ['EADDRNOTAVAIL', 'ENOTFOUND'])
      t.match(told(code, place), {
        code,
        message: 'This machine has no address 192.0.2.1. Choose another host, such as 127.0.0.1.'
      })
    t.match(told('EMFILE', place), { code: 'EMFILE', message: 'no' })
    t.end()
  }
)
