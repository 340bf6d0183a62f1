'use strict'
// Preloaded into every test process (.taprc), and by NODE_OPTIONS into each process and thread that it starts. If COVERAGE_FOLDER is set
// each writes there, when it ends, which of the sources it has run. tap's own measurement starts a thread of loaders beside each process
// and thread, which takes longer than most of them run. So it is kept from starting.
const asyncHooks = require('node:async_hooks')
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs')
const { Session } = require('node:inspector')
const Module = require('node:module')
const { join } = require('node:path')
const { fileURLToPath, pathToFileURL } = require('node:url')
const { threadId } = require('node:worker_threads')

const folder = process.env.COVERAGE_FOLDER
const root = pathToFileURL(join(__dirname, '../..')).href
const SOURCES = new RegExp(
  `^${root.replace(/[.+?^$()[\]{}|\\]/g, '\\$&')}/(?:\\.build|dist)/(?:machines|runtime|adapters|examples)/`
)

if (process.execArgv.some(argument => argument.includes('@tapjs/processinfo'))) {
  const { register } = Module
  process.env.__TAPJS_PROCESSINFO_TESTING_NO_REGISTER__ = String(process.pid)
  Module.register = (specifier, options, ...more) => {
    if (!String(options?.parentURL).includes('/@tapjs/')) register.call(Module, specifier, options, ...more)
  }
}

if (folder === undefined) {
  delete process.env.NODE_OPTIONS
} else {
  process.env.NODE_OPTIONS = `--require=${JSON.stringify(__filename)}`
  measure()
  withoutDomains()
}

// By a hook at each promise tap finds the test of an error that nobody awaits. That takes a fifth of the time of the processor. Without
// it such an error ends the process; a file that is run by its name has the hook, and tells the test.
function withoutDomains() {
  const { createHook } = asyncHooks
  const none = { enable: () => none, disable: () => none }
  asyncHooks.createHook = methods => (new Error('').stack.includes('/async-hook-domain/') ? none : createHook(methods))
  Module.syncBuiltinESMExports()
}

function measure() {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  const { emit } = process
  // What runs last is what others do when the process ends.
  process.emit = function (event, ...args) {
    const isHeard = emit.call(this, event, ...args)
    if (event === 'exit') write(session)
    return isHeard
  }
}

// tsx changes some of what it loads, dynamic imports for one: then what ran is at other places than in the file.
function isAsWritten({ url, functions: [whole] }) {
  return readFileSync(fileURLToPath(url), 'utf8').length === whole.ranges[0].endOffset
}

function write(session) {
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error) throw error
    mkdirSync(folder, { recursive: true })
    const result = coverage.result.filter(script => SOURCES.test(script.url) && isAsWritten(script))
    writeFileSync(join(folder, `${process.pid}-${threadId}-${Date.now()}.json`), JSON.stringify({ result }))
  })
}
