// The client has some of the commands, and knows the names of all others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientCommands, serverCommandWords } from '../../src/cli/commands/client.ts'
import { commands } from '../../src/cli/commands.ts'

const firstWord = ({ name }: { name: string }) => name.split(' ', 1)[0] as string

test('every command is one of the client, or known to it as one of the server', () => {
  const inClient = new Set(clientCommands.map(firstWord))
  for (const command of commands) {
    const word = firstWord(command)
    assert.notEqual(inClient.has(word), serverCommandWords.has(word), command.name)
  }
})
