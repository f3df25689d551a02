import { Button, Code, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { CopyTextButton } from '../components/copy.tsx'
import { download } from '../download.ts'
import { DownloadIcon } from '../icons.tsx'

export function RecoveryCodes({ codes }: { codes: string[] }) {
  const text = `${codes.join('\n')}\n`
  return (
    <Stack gap="xs">
      <Text fw={600}>2. Save your recovery codes</Text>
      <Text size="sm">
        Use one if you lose your authenticator app. Each code works once. You will not see them again.
      </Text>
      <SimpleGrid cols={{ base: 2, sm: 4 }} spacing={6} verticalSpacing={6}>
        {codes.map((code) => (
          <Code key={code} className="mono nowrap" p={4} ta="center">
            {code}
          </Code>
        ))}
      </SimpleGrid>
      <Group gap="xs">
        <CopyTextButton text={text} name="Copy recovery codes" />
        <Button
          variant="default"
          size="xs"
          leftSection={<DownloadIcon size={15} />}
          onClick={() => download('adit-recovery-codes.txt', 'text/plain', text)}
        >
          Download
        </Button>
      </Group>
    </Stack>
  )
}
