"""The JSON files that list what CUDA and cuDNN consist of, and the repositories made of that."""

CUDA_REDIST_JSON_DICT = {
    "12.5.1": [
        "https://gone.invalid/cuda/redist/redistrib_12.5.1.json",
        "e302eca94f11bcc94193c333f980a7cfb86aaa730a292965806595e7af3c193d",
    ],
    "12.8.1": [
        "https://gone.invalid/cuda/redist/redistrib_12.8.1.json",
        "2252c2178848d30a0d45ecd3d9670207649556fc8de3f857a2bdd0fb742e2e21",
    ],
}

CUDNN_REDIST_JSON_DICT = {
    "9.3.0": [
        "https://gone.invalid/cudnn/redist/redistrib_9.3.0.json",
        "f002b19a959e319be3abddf232bccb3f4398b8a27a0cb80236ae15b7afcaa2d1",
    ],
}

REDIST_REPOSITORIES = {
    "cuda_cudart": {"repo_name": "cuda_cudart"},
    "cudnn": {"repo_name": "cuda_cudnn"},
}
