// `adit mcp` as a process of its own, for a server and a key that are given.
import { createIo } from '../../src/cli/io.ts'
import { mcp } from '../../src/cli/mcp.ts'

const [baseUrl = '', apiKey = ''] = process.argv.slice(2)
await mcp({ baseUrl, apiKey }, createIo(false))
