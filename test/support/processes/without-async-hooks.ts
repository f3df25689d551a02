// Loaded before node:test, which otherwise follows every asynchronous resource to find the test of an
// uncaught exception. That takes a fifth of the CPU time of tests with a server in their process. Without it,
// such an exception fails the file instead of the test.
import asyncHooks from 'node:async_hooks'

const inactive = { enable: () => inactive, disable: () => inactive }
Object.assign(asyncHooks, { createHook: () => inactive })
