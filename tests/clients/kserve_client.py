"""KServe's own client against a running service: run by an interpreter that has `kserve`, with the address, model, key and record.

Prints one JSON object with what each call returned.
"""

import asyncio
import json
import sys

import httpx
from kserve import InferenceRESTClient
from kserve.inference_client import RESTConfig


async def status_of(call) -> int:
    try:
        await call
    except httpx.HTTPStatusError as error:
        return error.response.status_code
    return 200


async def main(url: str, name: str, key: str, record: str) -> dict:
    headers = {"Authorization": f"Bearer {key}"}
    question = {"instances": [json.loads(record)], "id": "from-kserve"}
    v1, v2 = (InferenceRESTClient(RESTConfig(protocol=protocol)) for protocol in ("v1", "v2"))
    found = {
        "v1 live": await v1.is_server_live(url),
        "v1 model ready": await v1.is_model_ready(url, name),
        "v1 explain": await v1.explain(url, name, question, headers=headers),
        "v1 explain again": await v1.explain(url, name, question, headers=headers),
        "v1 explain without a key": await status_of(v1.explain(url, name, question)),
        "v1 explain another model": await status_of(v1.explain(url, "other", question, headers=headers)),
        "v1 predict": await status_of(v1.infer(url, question, name, headers=headers)),
        "v2 live": await v2.is_server_live(url),
        "v2 ready": await v2.is_server_ready(url),
        "v2 model ready": await v2.is_model_ready(url, name),
        "v2 other model ready": await v2.is_model_ready(url, "other"),
    }
    await v1.close()
    await v2.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
