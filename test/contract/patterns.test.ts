// The patterns in documents compile in the regular expressions of other languages, and accept what the server
// does. RE2 is tested in test/openapi-tools/.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { documentedPatterns } from '../support/api/patterns.ts'

const patterns = documentedPatterns()

/** Each reads lines with a pattern and texts that it must accept, in hexadecimal, and prints what fails. */
const PYTHON = `
import re, sys
for line in sys.stdin:
    pattern, *texts = (bytes.fromhex(part).decode() for part in line.rstrip("\\n").split("\\t"))
    try:
        for text in texts:
            if not re.compile(pattern).search(text): print("no match:", ascii(pattern), ascii(text))
        re.compile(pattern)
    except re.error as error: print(ascii(pattern), error)
`
const JAVA = `
import java.util.*; import java.util.regex.*; import java.nio.charset.StandardCharsets;
class Patterns {
  static String decode(String hex) {
    return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
  }
  public static void main(String[] args) {
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine();) {
      String[] parts = lines.nextLine().split("\\t", -1);
      try {
        Pattern pattern = Pattern.compile(decode(parts[0]));
        for (int i = 1; i < parts.length; i++)
          if (!pattern.matcher(decode(parts[i])).find())
            System.out.println("no match: " + pattern + " " + decode(parts[i]));
      } catch (PatternSyntaxException error) { System.out.println(error.getDescription()); }
    }
  }
}
`

const hex = (text: string) => Buffer.from(text).toString('hex')

const toLine = (pattern: string, texts: Iterable<string>) => `${[pattern, ...texts].map(hex).join('\t')}\n`
/** The last two show that failures are found. */
const input = [...patterns, ['\\p{Default_Ignorable_Code_Point}', []] as const, ['^a$', ['b']] as const]
  .map(([pattern, texts]) => toLine(pattern, texts))
  .join('')

function failures(command: string, args: string[]): string[] {
  const { status, stdout, stderr } = spawnSync(command, args, { input, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout.trim().split('\n')
}

test('every pattern of a document compiles in JavaScript without flags, and accepts its examples', () => {
  assert.ok(patterns.size > 20)
  for (const [pattern, texts] of patterns) for (const text of texts) assert.match(text, new RegExp(pattern))
})

test('every pattern of a document compiles in Python, and accepts its examples', (t) => {
  if (spawnSync('python3', ['--version']).status !== 0) return t.skip('Python is not installed here')
  const failed = failures('python3', ['-c', PYTHON])
  assert.match(failed[0] ?? '', /bad escape/)
  assert.deepEqual(failed.slice(1), ["no match: '^a$' 'b'"])
})

test('every pattern of a document compiles in Java, and accepts its examples', (t) => {
  if (spawnSync('javac', ['--version']).status !== 0) return t.skip('Java is not installed here')
  const folder = mkdtempSync(join(tmpdir(), 'adit-java-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'Patterns.java')
  writeFileSync(file, JAVA)
  const failed = failures('java', [file])
  assert.match(failed[0] ?? '', /Unknown character property/)
  assert.deepEqual(failed.slice(1), ['no match: ^a$ b'])
})
