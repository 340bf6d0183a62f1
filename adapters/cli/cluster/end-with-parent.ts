/** Ends a process with the one that started it, however that ends: as Ctrl-C would. */
process.once('disconnect', () => process.kill(process.pid, 'SIGINT'))
