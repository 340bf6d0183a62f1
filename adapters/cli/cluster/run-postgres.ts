import { spawn } from 'node:child_process'

/**
 * The process that runs PostgreSQL, with its program, user, folder and arguments as JSON. It shuts the server down when
 * its own parent lets it go, or ends without a word. The server has a process group of its own, so Ctrl-C reaches the
 * nodes first.
 */
const { program, args, user, folder } = JSON.parse(String(process.argv[2])) as {
  readonly program: string
  readonly args: readonly string[]
  readonly user: object
  readonly folder: string
}
const server = spawn(program, args, { ...user, cwd: folder, detached: true, stdio: ['ignore', 'ignore', 'inherit'] })
process.once('disconnect', () => server.kill('SIGINT'))
server.on('error', error => process.stderr.write(`FATAL: ${error.message}\n`))
server.on('close', code => process.exit(code ?? 1))
