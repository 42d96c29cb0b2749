"""An object store
===============

A conversion writes to S3, and maps read the parts that they need. Here a server of moto is S3.
"""

import logging

import boto3
from moto.server import ThreadedMotoServer

import ambar

logging.getLogger("werkzeug").setLevel("ERROR")
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
keys = {"endpoint": f"http://{host}:{port}", "access_key_id": "me", "secret_access_key": "secret"}
names = {"aws_access_key_id": "me", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
boto3.client("s3", endpoint_url=keys["endpoint"], **names).create_bucket(Bucket="bucket")

# %%
# The target of a conversion is a URL. The object appears when it is complete.
output = "../../../tests/data/ramses/implosion2d/output_00004"
url = "s3://bucket/implosion.ambar"
ambar.convert(output, url, error_bound="1e-3 relative", storage_options=keys)

# %%
# Opening takes one request. A part of a map fetches the chunks in that part only.
run = ambar.open_snapshot(url, storage_options=keys)
part = ambar.Box((0, 0), (0.25, 0.25))
print(run.amr.chunks_touched(region=part), "of", run.amr.chunk_count)

# %%
run.plot("density", region=part, levels=True)

# %%
# The server and its objects end here.
server.stop()
